// The leader appends payloads to the newest segment of its process, and obeys one rule:
//
//   A row leaves the newest log of LevelDB, for a table or because another log is begun, only when
//   its frame is on the device.
//
// So after a power loss only rows of the newest log can name frames that are lost. The log also
// says how far the segments were synced (`SyncedPlace.swift`). Recovery checks the frames behind
// that, and takes the first bad one for the end of the logs (`FrameCheck.swift`). The rule holds
// because
//
//   1. all segments are synced, with their names, before LevelDB's memory may be full, before a
//      compaction of the memory, and before each write while a compaction runs;
//   2. a durable write syncs the segments before it syncs the log.
//
// So that these wait for little, another thread syncs what has been appended (`SegmentSync.swift`).
// It also seals a segment that is full, once it is synced: recovery need not check its frames.
//
// Room is allocated ahead of the appends, which then take less time. That is a hint: if it fails,
// they allocate it themselves. A disk that is nearly full has no room for it. The seal, or the next
// opening after a kill, gives back what was not used.
//
// A frame is appended before its row is written. If appending fails, the write fails, and has no
// effect; the next frame is written over what is there.

/// Appends payloads to segments, for the leader of the commit queue.
struct SegmentWriter: ~Copyable {
  /// A segment of this size is sealed.
  static let segmentBytes = 32 << 20
  /// The number of full segments that may wait to be synced.
  private static let mostEnded = 2

  private struct Current {
    let number: UInt32
    let file: any StoreFile
    var end: Int
    /// The place up to which a sync has begun.
    var syncing = 0
    /// The place up to which room was allocated, or could not be.
    var allocated = 0

    func sync(endsSegment: Bool) -> SegmentSync.Request {
      SegmentSync.Request(number: number, file: file, end: end, isLast: endsSegment)
    }
  }

  let reader: SegmentFiles
  let sync: SegmentSync
  private let segmentBytes: Int
  private var current: Current?
  /// The number of the last segment.
  ///
  /// No other gets it while the store is open: a reader may have a row of it, or the logs a place
  /// behind it.
  private var lastNumber: UInt32
  /// Whether a frame, or the name of a segment, may not be on the device.
  private(set) var hasUnsynced = false
  /// Whether the last place in the logs may not cover all rows that name frames.
  var hasUnnotedRows = false
  /// The last place in the logs.
  private var noted = SyncedPlace(endOf: 0)
  private var buffer = ByteBuffer()

  /// Begins with a segment after the one numbered `last`; recovery has synced those up to it.
  ///
  /// Syncs on the caller's thread if `syncsAhead` is false.
  init(
    with reader: SegmentFiles, after last: UInt32, segmentBytes: Int = Self.segmentBytes,
    syncsAhead: Bool
  ) {
    self.reader = reader
    self.segmentBytes = segmentBytes
    lastNumber = last
    sync = SegmentSync(
      in: reader.directory, reader.files, after: SyncedPlace(endOf: last), hasThread: syncsAhead)
  }

  /// Whether a segment was there at the opening or has been begun since.
  var hasSegments: Bool { lastNumber > 0 }

  /// A segment, and its size.
  struct Place {
    let number: UInt32
    let byteCount: Int
  }

  /// The segment that is appended to, if one was begun.
  var currentPlace: Place? { current.map { Place(number: $0.number, byteCount: $0.end) } }

  /// Appends the frame of a payload.
  ///
  /// - Throws: ``StoreError/diskFull`` or ``StoreError/io(_:)``. The frame does not exist then.
  mutating func append(
    _ payload: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer, sequence: UInt64
  ) throws(StoreError) -> FramePointer {
    let count = FrameHeader.byteCount + key.count + payload.count
    if let current, current.end > SegmentHeader.byteCount, current.end + count > segmentBytes {
      try endSegment()
    }
    if current == nil { try begin() }
    guard var segment = current else { preconditionFailure("no segment was begun") }
    if segment.end + count > segment.allocated { allocateAhead(in: &segment, for: count) }
    buffer.truncate(to: 0)
    FrameHeader.append(key: key, payloadCount: payload.count, sequence: sequence, to: &buffer)
    buffer.append(key)
    hasUnsynced = true
    try buffer.withBytes { header throws(StoreError) in
      try segment.file.write(header, payload, at: segment.end)
    }
    let pointer = FramePointer(
      segment: segment.number, offset: segment.end, payloadCount: payload.count,
      sequence: sequence)
    segment.end += count
    reader.didAppend(count)
    current = segment
    if segment.end - segment.syncing >= segmentBytes / 4, segment.end < segmentBytes {
      beginSync()
    }
    return pointer
  }

  /// Allocates room for a frame and an eighth of a segment, which ends with the segment.
  private func allocateAhead(in segment: inout Current, for count: Int) {
    let end = min(segment.end + count + segmentBytes / 8, segmentBytes)
    guard end > segment.allocated else { return }
    segment.allocated = end
    do throws(StoreError) {
      guard try !Reserve.isTight(reader.directory, reader.files) else { return }
      try segment.file.allocate(upTo: end)
    } catch {
      // The write allocates what it needs, or fails.
    }
  }

  /// Begins to sync what has been appended, and returns before that is done.
  mutating func beginSync() {
    guard hasUnsynced, let segment = current else { return }
    current?.syncing = segment.end
    sync.begin(segment.sync(endsSegment: false))
  }

  /// The place to write with the next rows; nil if recovery need not know it.
  ///
  /// With `always`, rows that were written since the last place are enough of a reason; otherwise
  /// more frames must have been synced, too.
  mutating func placeToNote(always: Bool) -> SyncedPlace? {
    guard hasUnnotedRows else { return nil }
    let place = sync.place
    guard always || place > noted else { return nil }
    noted = place
    // Rows may name frames behind the place until all frames are synced.
    hasUnnotedRows = hasUnsynced
    return place
  }

  /// Waits until all frames are on the device, and the names of their segments.
  mutating func synchronize() throws(StoreError) {
    guard hasUnsynced else { return }
    try synchronize(endsSegment: false)
  }

  /// Syncs all segments and ends the newest one; the next frame begins another one.
  mutating func seal() throws(StoreError) {
    try synchronize(endsSegment: true)
    current = nil
  }

  private mutating func synchronize(endsSegment: Bool) throws(StoreError) {
    if let current {
      try sync.run(current.sync(endsSegment: endsSegment))
    } else {
      try sync.wait()
    }
    hasUnsynced = false
  }

  /// Ends the newest segment, which is synced and sealed by another thread.
  mutating func endSegment() throws(StoreError) {
    guard let segment = current else { return }
    if sync.endedSegments >= Self.mostEnded { try sync.wait() }
    sync.begin(segment.sync(endsSegment: true))
    current = nil
  }

  /// Leaves the segment, which recovery has checked and synced.
  mutating func abandon() {
    sync.reset(to: SyncedPlace(endOf: lastNumber))
    current = nil
    (hasUnsynced, hasUnnotedRows, noted) = (false, false, SyncedPlace(endOf: 0))
    reader.closeAll()
  }

  private mutating func begin() throws(StoreError) {
    try StoreDirectory.requireSegments(in: reader.directory, reader.files)
    let last = max(try reader.numbers().last ?? 0, lastNumber)
    guard last < .max else { throw .io("\(reader.path(of: last)) has the last possible number") }
    let number = last + 1
    buffer.truncate(to: 0)
    SegmentHeader.append(number: number, to: &buffer)
    let path = reader.path(of: number)
    try reader.files.create(path, with: buffer.withBytes { [UInt8]($0) })
    guard let file = try reader.files.openFile(path, forWriting: true) else {
      throw .io("\(path) is missing")
    }
    reader.add(file, as: number)
    lastNumber = number
    current = Current(number: number, file: file, end: SegmentHeader.byteCount)
    hasUnsynced = true
  }
}
