import Synchronization

/// Reads payloads from segments.
///
/// It keeps files open, at most ``mostOpen``; the one that was not used for longest is closed
/// first.
final class SegmentFiles: Sendable {
  /// What a lookup of a row's payload found.
  enum Resolution {
    /// The value is not separated, and unchanged.
    case whole
    /// The value is complete: head and payload. If the frame was not the row's, the payload is
    /// missing, and the value does not match its stamp.
    case read
    /// There is no segment of this number. The value is unchanged: the row may have changed since
    /// it was read, and its segment been deleted.
    case missing(UInt32)
  }

  private static let mostOpen = 64

  fileprivate struct Segment {
    let file: any StoreFile
    /// The size that the file had when it was last asked for, which bounds what a read allocates.
    var byteCount: Int
    var lastUse: UInt64
  }

  fileprivate struct Open {
    var files: [UInt32: Segment] = [:]
    var uses: UInt64 = 0
  }

  let directory: String
  let files: any StoreFiles
  let format: ValueSeparation
  private let open = Lock(Open())
  private let appended = Atomic<Int>(0)
  private let moved = Atomic<Int>(0)
  private let removed = Atomic<Int>(0)

  /// The bytes of all frames that were appended since the store was opened.
  var appendedBytes: Int { appended.load(ordering: .relaxed) }

  /// Counts a frame that was appended.
  func didAppend(_ count: Int) { appended.add(count, ordering: .relaxed) }

  /// Counts appended frames that a collection has copied.
  func didMove(_ count: Int) { moved.add(count, ordering: .relaxed) }

  /// Counts payloads that were removed.
  func didRemove(_ count: Int) { removed.add(count, ordering: .relaxed) }

  /// An estimate of the bytes that have died since the store was opened.
  ///
  /// A payload that was saved may have replaced one of its size. Removed payloads count as well.
  var changedBytes: Int {
    appendedBytes - moved.load(ordering: .relaxed) + removed.load(ordering: .relaxed)
  }

  init(in directory: String, files: any StoreFiles, format: ValueSeparation) {
    self.directory = directory
    self.files = files
    self.format = format
  }

  func path(of number: UInt32) -> String { "\(directory)/\(SegmentHeader.name(of: number))" }

  /// The numbers of the segments in the directory, in order.
  func numbers() throws(StoreError) -> [UInt32] {
    try files.names(in: directory).compactMap(SegmentHeader.number(of:)).sorted()
  }

  /// Replaces the row of a separated value, which `value` holds, by the value.
  ///
  /// The row may be damaged: no memory is allocated for a payload that is not in the segment.
  ///
  /// - Throws: ``StoreError/io(_:)`` if the segment cannot be read.
  /// - Complexity: One read, after opening the segment if needed.
  func resolve(_ value: inout ValueBuffer, under key: RawSpan) throws(StoreError) -> Resolution {
    let row = key.withUnsafeBytes { SeparatedRow(value.memory.bytes, under: $0, by: format) }
    guard let row else { return .whole }
    let number = row.pointer.segment
    guard let segment = try open(number) else { return .missing(number) }
    let end = row.pointer.offset + FrameHeader.byteCount + key.byteCount + row.pointer.payloadCount
    let isPossible =
      row.valueCount <= EngineLimits.valueBytes ? try has(end, segment, numbered: number) : false
    let bytes = value.resize(to: isPossible ? row.valueCount : row.headCount)
    bytes[format.flagOffset] &= ~format.flag
    guard isPossible else { return .read }
    let payload = UnsafeMutableRawBufferPointer(rebasing: bytes[row.headCount...])
    if try !key.withUnsafeBytes({ key throws(StoreError) in
      try Self.read(row.pointer, of: key, from: segment.file, into: payload)
    }) {
      _ = value.resize(to: row.headCount)
    }
    return .read
  }

  /// Replaces the row of a separated value by the value's head, which does not match its stamp.
  ///
  /// - Returns: The size of the value; nil if it is not separated, and unchanged.
  @discardableResult func removePayload(
    of value: inout ValueBuffer, under key: RawSpan
  ) -> Int? {
    let row = key.withUnsafeBytes { SeparatedRow(value.memory.bytes, under: $0, by: format) }
    guard let row else { return nil }
    value.resize(to: row.headCount)[format.flagOffset] &= ~format.flag
    return row.valueCount
  }

  /// Reads the payload of a frame; false if `pointer` and `key` do not belong to the frame.
  private static func read(
    _ pointer: FramePointer, of key: UnsafeRawBufferPointer, from file: any StoreFile,
    into payload: UnsafeMutableRawBufferPointer
  ) throws(StoreError) -> Bool {
    let headerCount = FrameHeader.byteCount + key.count
    var result = Result<Bool, StoreError>.success(false)
    withUnsafeTemporaryAllocation(byteCount: headerCount, alignment: 8) { header in
      do throws(StoreError) {
        let count = try file.read(into: header, payload, at: pointer.offset)
        let isWhole = count == headerCount + payload.count
        let isRight =
          isWhole
          && FrameHeader.matches(
            UnsafeRawBufferPointer(header), pointer, key: key)
          && header[FrameHeader.byteCount...].elementsEqual(key)
        result = .success(isRight)
      } catch {
        result = .failure(error)
      }
    }
    return try result.get()
  }

  /// A segment with its open file; nil if there is none.
  private func open(_ number: UInt32) throws(StoreError) -> Segment? {
    let found = open.withLock { open -> Segment? in
      open.uses += 1
      open.files[number]?.lastUse = open.uses
      return open.files[number]
    }
    if let found { return found }
    let file: (any StoreFile)?
    do throws(StoreError) {
      file = try files.openFile(path(of: number))
    } catch {
      // The process may have no descriptor left.
      open.withLock { $0.close(leaving: Self.mostOpen / 2) }
      file = try files.openFile(path(of: number))
    }
    guard let file else { return nil }
    add(file, as: number)
    return Segment(file: file, byteCount: 0, lastUse: 0)
  }

  /// Whether a segment has `count` bytes or more; it may have grown since its size was noted.
  private func has(
    _ count: Int, _ segment: Segment, numbered number: UInt32
  ) throws(StoreError) -> Bool {
    if count <= segment.byteCount { return true }
    let byteCount = try segment.file.byteCount()
    open.withLock { $0.files[number]?.byteCount = byteCount }
    return count <= byteCount
  }

  /// Keeps an open file for reads.
  func add(_ file: any StoreFile, as number: UInt32) {
    open.withLock { open in
      open.uses += 1
      open.files[number] = Segment(file: file, byteCount: 0, lastUse: open.uses)
      if open.files.count > Self.mostOpen { open.close(leaving: Self.mostOpen) }
    }
  }

  /// Deletes a segment, which no row names.
  func remove(_ number: UInt32) throws(StoreError) {
    try files.remove(path(of: number))
    open.withLock { $0.files[number] = nil }
  }

  /// Closes all files.
  func closeAll() { open.withLock { $0.files = [:] } }
}

extension SegmentFiles.Open {
  fileprivate mutating func close(leaving count: Int) {
    for (number, _) in files.sorted(by: { $0.value.lastUse < $1.value.lastUse }).dropLast(count) {
      files[number] = nil
    }
  }
}
