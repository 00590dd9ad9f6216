// After a power loss, rows of the logs may name frames that the device has lost. The first such row
// ends the logs, as a record does that was not written completely: it, and everything after it,
// was not durable. But a bad frame may also be one that was on the device and was damaged since.
// Then it damages its entry alone: later writes may have been durable. So a frame is checked only
// if nothing says that it was synced. It was if
//
//   1. its row is in a table, or in a log that a later log follows. A row leaves the newest log
//      only when its frame is on the device (see `SegmentWriter.swift`).
//   2. it lies before a synced place in the logs (see `SyncedPlace.swift`).
//   3. its segment is sealed.
//
// The writer adds a place to a write if rows that name frames were written since the last place,
// or with it, and
//
//   - the write is durable. The leader syncs the segments, with their names, then appends the batch
//     with the place to the log, then syncs the log. The batch is one record: if the place is in
//     the log, the segments were synced before, whatever became of the log's own sync and that of
//     older logs. Of those the place says nothing.
//   - or more frames are on the device than at the last place, because another thread has synced
//     or sealed a segment, or because the store was opened: recovery has synced all frames that
//     logs named by then, and rows in tables name no other ones.
//   - or the segment was sealed, because the store is being closed or copied.
//
// So nothing durable is cut: a row of the newest log that precedes a durable write has a place at
// or after it in the same log, and places never decrease while a store is open. A bad frame behind
// the last place may have been lost with the power, and then what follows was not durable.
//
// A place never speaks of another segment of the same number. While a store is open, no number is
// used twice. Segments are deleted only when their rows, and all places so far, have left the logs
// (see `Collection.swift`); and an opening begins a new log.
//
// Logs that were written before there were places lack them. Then rules 1 and 3 remain.

/// Checks the frames that logs name.
struct FrameCheck {
  private let reader: SegmentFiles
  /// The segments of the frames so far, and whether they were sealed.
  private var segments: [UInt32: Bool] = [:]
  /// The last place in the logs.
  private var synced = SyncedPlace(endOf: 0)
  /// The frame that ends the logs; nil if they end for another reason, or not.
  private(set) var lost: FramePointer?
  private var value = Value()

  /// A buffer that a structure with copies can hold.
  private final class Value { var buffer = ValueBuffer() }

  init(in directory: String, files: any StoreFiles, format: ValueSeparation) {
    reader = SegmentFiles(in: directory, files: files, format: format)
  }

  /// Finds the end of the logs: the first row whose frame is lost, or `end` if that comes earlier.
  ///
  /// - Parameters:
  ///   - logs: The logs in their order.
  ///   - end: Where the logs end for another reason, as the index of a log and a place in it; nil
  ///     if they are complete.
  /// - Returns: The end, in the same form.
  /// - Throws: Errors of the file layer.
  /// - Complexity: Reads the logs, the last one twice, and the frames behind the last place that it
  ///   names in segments that are not sealed.
  mutating func end(
    of logs: [LogSurvey.Log], before end: (log: Int, place: Int)?
  ) throws(StoreError) -> (log: Int, place: Int)? {
    if try !mayNameSegments(), try reader.numbers().isEmpty { return end }
    for (index, log) in logs.enumerated() where index <= end?.log ?? .max {
      let bytes = try reader.files.read("\(reader.directory)/\(log.name)", limit: nil)
      let limit = index == end?.log ? end?.place ?? .max : .max
      try Self.forEachPut(in: bytes, before: limit) { _, key, row throws(StoreError) in
        try note(row, under: key)
      }
      guard index == logs.count - 1 else { continue }
      var place: Int?
      try Self.forEachPut(in: bytes, before: limit) { start, key, row throws(StoreError) in
        if place == nil, try isLost(row, under: key) { place = start }
      }
      if let place { return (index, place) }
    }
    return end
  }

  /// Waits until the frames that the logs name, and the names of their segments, are on the device.
  ///
  /// With `ownsFiles`, it gives back the room that was allocated in advance. Otherwise another
  /// process may be appending to them. After a failed sync, it writes the segments again.
  func synchronize(ownsFiles: Bool, afterFailedSync: Bool) throws(StoreError) {
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
  private func mayNameSegments() throws(StoreError) -> Bool {
    try StoreDirectory.formatVersion(in: reader.directory, reader.files)
      >= StoreMarker.segmentVersion
  }

  /// Calls `body` with each put in the records of a log before `end`, and where its record begins.
  private static func forEachPut(
    in log: [UInt8], before end: Int,
    _ body: (_ start: Int, _ key: RawSpan, _ value: RawSpan) throws(StoreError) -> Void
  ) throws(StoreError) {
    var scan = LogScan(log, of: .batches(minimumSequence: 0))
    while let record = scan.next(), record.start < end {
      try scan.withBytes(of: record) { batch throws(StoreError) in
        try LogBatch.forEachPut(in: batch) { key, value throws(StoreError) in
          try body(record.start, key, value)
        }
      }
    }
  }

  /// Notes the place that a row is, or the segment that it names.
  private mutating func note(_ row: RawSpan, under key: RawSpan) throws(StoreError) {
    if let place = SyncedPlace(row, under: key) {
      synced = max(synced, place)
    } else if let frame = frame(of: row, under: key) {
      _ = try isSealed(frame.segment)
    }
  }

  /// Whether a row names a frame that is not there, and that may never have been synced.
  private mutating func isLost(
    _ row: RawSpan, under key: RawSpan
  ) throws(StoreError) -> Bool {
    guard let frame = frame(of: row, under: key), !synced.isBehind(frame),
      try !isSealed(frame.segment)
    else { return false }
    value.buffer.assign(row)
    let stamp = reader.format.stamp
    if case .read = try reader.resolve(&value.buffer, under: key),
      value.buffer.withBytes({ stamp.isIntact($0, key: key) })
    {
      return false
    }
    lost = frame
    return true
  }

  private func frame(of row: RawSpan, under key: RawSpan) -> FramePointer? {
    key.withUnsafeBytes { key in
      row.withUnsafeBytes { SeparatedRow($0, under: key, by: reader.format)?.pointer }
    }
  }

  private mutating func isSealed(_ number: UInt32) throws(StoreError) -> Bool {
    if let known = segments[number] { return known }
    let path = reader.path(of: number)
    guard try reader.files.kind(of: path) != nil else { return false }
    let isSealed = try SegmentHeader.isSealed(path, reader.files)
    segments[number] = isSealed
    return isSealed
  }
}
