// After a power loss, rows of the logs may name frames that the device has lost. A row in a table
// never does (see `SegmentWriter.swift`), nor does one that names a sealed segment. So the frames
// are checked that the logs name in other segments. The first bad one ends the logs, as a record
// does that was not written completely: it, and everything after it, was not durable.

/// Checks the frames that logs name.
struct FrameCheck {
  private let reader: SegmentFiles
  /// The segments of the frames so far, and whether they were sealed.
  private var segments: [UInt32: Bool] = [:]
  private var value = Value()

  /// A buffer that a structure with copies can hold.
  private final class Value { var buffer = ValueBuffer() }

  init(in directory: String, files: any StoreFiles, format: ValueSeparation) {
    reader = SegmentFiles(in: directory, files: files, format: format)
  }

  /// Finds the end of the logs: the first row whose frame is bad, or `end` if that comes earlier.
  ///
  /// - Parameters:
  ///   - logs: The logs in their order.
  ///   - end: Where the logs end for another reason, as the index of a log and a place in it; nil
  ///     if they are complete.
  /// - Returns: The end, in the same form.
  /// - Throws: Errors of the file layer.
  /// - Complexity: Reads the logs, and the frames that they name in segments that are not sealed.
  mutating func end(
    of logs: [LogSurvey.Log], before end: (log: Int, place: Int)?
  ) throws(EngineError) -> (log: Int, place: Int)? {
    if try !mayNameSegments(), try reader.numbers().isEmpty { return end }
    for (index, log) in logs.enumerated() where index <= end?.log ?? .max {
      let bytes = try reader.files.read("\(reader.directory)/\(log.name)", limit: nil)
      var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
      while let record = scan.next() {
        if let end, index == end.log, record.start >= end.place { return end }
        let isGood = try scan.withBytes(of: record) { batch throws(EngineError) in
          try checkFrames(of: batch)
        }
        if !isGood { return (index, record.start) }
      }
    }
    return end
  }

  /// Waits until the checked frames, and the names of their segments, are on the device.
  ///
  /// With `ownsFiles`, it gives back the room that was allocated in advance. Otherwise another
  /// process may be appending to them. After a failed sync, it writes the segments again.
  func synchronize(ownsFiles: Bool, afterFailedSync: Bool) throws(EngineError) {
    let unsealed = segments.filter { !$0.value }.keys.sorted()
    guard !unsealed.isEmpty else { return }
    for number in unsealed {
      let path = reader.path(of: number)
      if afterFailedSync { try reader.files.rewrite(path) }
      if ownsFiles, let count = try reader.files.byteCount(of: path) {
        try reader.files.truncate(path, to: count)
      } else {
        try reader.files.synchronize(path)
      }
    }
    try reader.files.synchronizeDirectory(reader.directory)
  }

  /// Whether the store's format allows segments: all of them may have been lost.
  private func mayNameSegments() throws(EngineError) -> Bool {
    try StoreDirectory.formatVersion(in: reader.directory, reader.files)
      >= StoreMarker.segmentVersion
  }

  private mutating func checkFrames(of batch: RawSpan) throws(EngineError) -> Bool {
    var isGood = true
    try LogBatch.forEachPut(in: batch) { key, row throws(EngineError) in
      guard isGood else { return }
      isGood = try checkFrame(of: row, under: key)
    }
    return isGood
  }

  private mutating func checkFrame(
    of row: RawSpan, under key: RawSpan
  ) throws(EngineError) -> Bool {
    let pointer = key.withUnsafeBytes { key in
      row.withUnsafeBytes { SeparatedRow($0, under: key, by: reader.format)?.pointer }
    }
    guard let pointer else { return true }
    guard try !isSealed(pointer.segment) else { return true }
    value.buffer.assign(row)
    guard case .read = try reader.resolve(&value.buffer, under: key) else { return false }
    let stamp = reader.format.stamp
    guard value.buffer.withBytes({ stamp.isIntact($0, key: key) }) else { return false }
    segments[pointer.segment] = false
    return true
  }

  private mutating func isSealed(_ number: UInt32) throws(EngineError) -> Bool {
    if let known = segments[number] { return known }
    let path = reader.path(of: number)
    guard try reader.files.kind(of: path) != nil else { return false }
    let isSealed = try SegmentHeader.isSealed(path, reader.files)
    segments[number] = isSealed
    return isSealed
  }
}
