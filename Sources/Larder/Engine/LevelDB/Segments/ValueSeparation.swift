/// The values of a store that may be kept in segments, and how their rows are told from others.
///
/// A value that is separated consists of a head and a payload. Its row in LevelDB is the head, with
/// a flag set, and a ``FramePointer`` to the payload. Readers get head and payload, without the
/// flag, as if the value had never been separated.
package struct ValueSeparation: Sendable {
  /// The first byte of the keys whose values may be separated.
  package let keySpace: UInt8
  /// The place in such a value of the byte with the flag.
  package let flagOffset: Int
  /// The flag, which is not set in a value that is written.
  package let flag: UInt8
  /// The stamp of such a value, in its head.
  package let stamp: Stamp
  /// The size in bytes from which on a payload is separated; nil to separate none.
  package var thresholdBytes: Int?

  package init(keySpace: UInt8, flagOffset: Int, flag: UInt8, stamp: Stamp, thresholdBytes: Int?) {
    precondition(flagOffset < stamp.end, "the flag is not in every head")
    self.keySpace = keySpace
    self.flagOffset = flagOffset
    self.flag = flag
    self.stamp = stamp
    self.thresholdBytes = thresholdBytes
  }

  /// Whether the row of a batch is to be separated.
  func applies(to row: WriteBatch.Row, in bytes: UnsafeRawBufferPointer) -> Bool {
    guard let thresholdBytes, row.payloadCount >= max(1, thresholdBytes) else { return false }
    return row.stamp == stamp && row.keyCount > 0 && bytes[row.start] == keySpace
  }
}

/// A row of LevelDB whose payload is in a segment.
struct SeparatedRow {
  /// The number of bytes before the pointer.
  let headCount: Int
  let pointer: FramePointer

  /// The size of the value that readers get.
  var valueCount: Int { headCount + pointer.payloadCount }

  /// Whether the value under `key` is separated.
  static func isOne(
    _ value: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer, by format: ValueSeparation
  ) -> Bool {
    value.count >= format.stamp.end + FramePointer.byteCount
      && value[format.flagOffset] & format.flag != 0 && key.first == format.keySpace
  }

  /// Nil if the value under `key` is not separated.
  init?(
    _ value: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer, by format: ValueSeparation
  ) {
    guard Self.isOne(value, under: key, by: format) else { return nil }
    headCount = value.count - FramePointer.byteCount
    pointer = FramePointer(UnsafeRawBufferPointer(rebasing: value[headCount...]))
  }

  /// Appends the row of a value with this head.
  static func append(
    head: UnsafeRawBufferPointer, _ pointer: FramePointer, by format: ValueSeparation,
    to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    buffer.append(head)
    buffer.withMutableBytes { $0[start + format.flagOffset] |= format.flag }
    pointer.append(to: &buffer)
  }
}
