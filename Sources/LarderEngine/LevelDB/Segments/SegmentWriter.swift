// The leader appends payloads to the newest segment of its process, and obeys one rule:
//
//   A row leaves the newest log of LevelDB, for a table or because another log is begun, only when
//   its frame is on the device.
//
// So after a power loss only rows of the newest logs can name frames that are lost; recovery
// checks those frames, and takes the first bad one for the end of the logs (`FrameCheck.swift`).
// The rule holds because
//
//   1. a segment is synced, with its name, before LevelDB's memory may be full, before a
//      compaction of the memory, and before each write while a compaction runs;
//   2. a durable write syncs the segment before it syncs the log;
//   3. a full segment is synced and sealed before the next one is begun.
//
// A frame is appended before its row is written. If appending fails, the write fails, and has no
// effect; the next frame is written over what is there.

import LarderBytes

/// Appends payloads to segments, for the leader of the commit queue.
struct SegmentWriter: ~Copyable {
  /// A segment of this size is sealed.
  static let segmentBytes = 32 << 20
  /// After this many bytes the system is asked to begin writing them to the device.
  private static let hintBytes = 4 << 20

  private struct Current {
    let number: UInt32
    let file: any StoreFile
    var end: Int
    /// The place up to which the system was asked to write.
    var hinted = 0
  }

  let reader: SegmentFiles
  private let segmentBytes: Int
  private var current: Current?
  /// The number of the last segment; no other gets it, as long as a reader may have a row of it.
  private var lastNumber: UInt32 = 0
  /// Whether a frame, or the name of a segment, may not be on the device.
  private(set) var hasUnsynced = false
  /// Whether a sync has failed: the device may have lost frames that rows name.
  private(set) var hasFailedToSync = false
  private var buffer = ByteBuffer()

  init(with reader: SegmentFiles, segmentBytes: Int = Self.segmentBytes) {
    self.reader = reader
    self.segmentBytes = segmentBytes
  }

  /// The number of the segment that is appended to; nil if there is none.
  var currentNumber: UInt32? { current?.number }

  /// Appends the frame of a payload.
  ///
  /// - Throws: ``EngineError/diskFull`` or ``EngineError/io(_:)``. The frame does not exist then.
  mutating func append(
    _ payload: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer, sequence: UInt64
  ) throws(EngineError) -> FramePointer {
    let count = FrameHeader.byteCount + key.count + payload.count
    if let current, current.end > SegmentHeader.byteCount, current.end + count > segmentBytes {
      try seal()
    }
    if current == nil { try begin() }
    guard var segment = current else { preconditionFailure("no segment was begun") }
    buffer.truncate(to: 0)
    FrameHeader.append(key: key, payloadCount: payload.count, sequence: sequence, to: &buffer)
    buffer.append(key)
    hasUnsynced = true
    try buffer.withBytes { header throws(EngineError) in
      try segment.file.write(header, payload, at: segment.end)
    }
    let pointer = FramePointer(
      segment: segment.number, offset: segment.end, payloadCount: payload.count,
      sequence: sequence)
    segment.end += count
    reader.didAppend(count)
    if segment.end - segment.hinted >= Self.hintBytes {
      segment.file.beginWriting(from: segment.hinted, count: segment.end - segment.hinted)
      segment.hinted = segment.end
    }
    current = segment
    return pointer
  }

  /// Waits until all frames are on the device, and the name of their segment.
  mutating func synchronize() throws(EngineError) {
    guard hasUnsynced, let current else { return }
    // The system may report a failed write once only.
    guard !hasFailedToSync else { throw .io("an earlier sync of a segment failed") }
    do throws(EngineError) {
      try current.file.synchronize()
      try reader.files.synchronizeDirectory(reader.directory)
    } catch {
      hasFailedToSync = true
      throw error
    }
    hasUnsynced = false
  }

  /// Syncs the segment and ends it; the next frame begins another one.
  mutating func seal() throws(EngineError) {
    guard let segment = current else { return }
    try synchronize()
    buffer.truncate(to: 0)
    FrameHeader.appendSeal(at: segment.end, to: &buffer)
    try buffer.withBytes { seal throws(EngineError) in
      try segment.file.write(
        seal, UnsafeRawBufferPointer(start: nil, count: 0), at: segment.end)
    }
    current = nil
  }

  /// Leaves the segment, which recovery has checked and synced.
  mutating func abandon() {
    current = nil
    hasUnsynced = false
    hasFailedToSync = false
    reader.closeAll()
  }

  private mutating func begin() throws(EngineError) {
    try StoreDirectory.requireSegments(in: reader.directory, reader.files)
    let number = max(try reader.numbers().last ?? 0, lastNumber) + 1
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
