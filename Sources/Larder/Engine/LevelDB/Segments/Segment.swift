// Segments: files of payloads that are too large to pass through LevelDB's log and its levels.
//
// A segment NNNNNNNN.segment begins with a header and is appended to. Integers are little-endian.
//
//   offset  bytes  field of the header
//   0       8      "LARDERSG"
//   8       4      number of the segment
//   12      4      CRC32C over bytes 0-11
//
// Frames follow, one for each payload:
//
//   offset  bytes  field of a frame
//   0       4      CRC32C over bytes 4-23 and the key
//   4       4      length of the key
//   8       4      length of the payload
//   12      4      0
//   16      8      commit sequence of the row that the payload was saved with
//   24      ...    key, payload
//
// The last 24 bytes of a segment may be its seal, a frame header whose key has the length
// 0xFFFFFFFF and whose payload has the seal's own offset as its length. The seal is written after
// an fsync: all frames before it are on the device.
//
// The row in LevelDB ends with a pointer to the frame:
//
//   0       4      number of the segment
//   4       4      offset of the frame
//   8       4      length of the payload
//   12      8      commit sequence in the frame
//
// A payload has no checksum of its own: that of the record, in the row, covers it. So a frame of
// another key, an earlier value, or another store's copy of the segment is never taken for it.

/// Where a row finds its payload.
struct FramePointer: Hashable {
  static let byteCount = 20

  let segment: UInt32
  let offset: Int
  let payloadCount: Int
  let sequence: UInt64

  init(segment: UInt32, offset: Int, payloadCount: Int, sequence: UInt64) {
    self.segment = segment
    self.offset = offset
    self.payloadCount = payloadCount
    self.sequence = sequence
  }

  init(_ bytes: UnsafeRawBufferPointer) {
    segment = loadLittleEndian(bytes, at: 0)
    offset = Int(loadLittleEndian(bytes, at: 4) as UInt32)
    payloadCount = Int(loadLittleEndian(bytes, at: 8) as UInt32)
    sequence = loadLittleEndian(bytes, at: 12)
  }

  func append(to buffer: inout ByteBuffer) {
    buffer.append(littleEndian: segment)
    buffer.append(littleEndian: UInt32(offset))
    buffer.append(littleEndian: UInt32(payloadCount))
    buffer.append(littleEndian: sequence)
  }
}

/// The header of a frame.
enum FrameHeader {
  static let byteCount = 24
  private static let sealKeyCount = UInt32.max

  static func append(
    key: UnsafeRawBufferPointer, payloadCount: Int, sequence: UInt64, to buffer: inout ByteBuffer
  ) {
    append(
      keyCount: UInt32(key.count), key: key, payloadCount: payloadCount, sequence: sequence,
      to: &buffer)
  }

  /// Whether `bytes` is the header of the frame that `pointer` names, of a payload under `key`.
  static func matches(
    _ bytes: UnsafeRawBufferPointer, _ pointer: FramePointer, key: UnsafeRawBufferPointer
  ) -> Bool {
    guard bytes.count >= byteCount, loadLittleEndian(bytes, at: 4) as UInt32 == key.count,
      loadLittleEndian(bytes, at: 8) as UInt32 == pointer.payloadCount,
      loadLittleEndian(bytes, at: 16) as UInt64 == pointer.sequence
    else { return false }
    return loadLittleEndian(bytes, at: 0) as UInt32 == checksum(of: bytes, key: key)
  }

  private static func append(
    keyCount: UInt32, key: UnsafeRawBufferPointer, payloadCount: Int, sequence: UInt64,
    to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    buffer.append(zeros: 4)
    buffer.append(littleEndian: keyCount)
    buffer.append(littleEndian: UInt32(payloadCount))
    buffer.append(zeros: 4)
    buffer.append(littleEndian: sequence)
    buffer.withMutableBytes { bytes in
      let header = UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
      let sum = checksum(of: UnsafeRawBufferPointer(header), key: key)
      header.storeBytes(of: sum.littleEndian, as: UInt32.self)
    }
  }

  private static func checksum(
    of header: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer
  ) -> UInt32 {
    crc32c(key, extending: crc32c(UnsafeRawBufferPointer(rebasing: header[4..<byteCount])))
  }

  // MARK: - Seals

  /// Appends the seal of a segment whose frames end at `offset`.
  static func appendSeal(at offset: Int, to buffer: inout ByteBuffer) {
    append(
      keyCount: sealKeyCount, key: UnsafeRawBufferPointer(start: nil, count: 0),
      payloadCount: offset, sequence: 0, to: &buffer)
  }

  /// Whether `bytes`, the last ones of a segment of `segmentBytes`, are its seal.
  static func isSeal(_ bytes: UnsafeRawBufferPointer, of segmentBytes: Int) -> Bool {
    var seal = ByteBuffer()
    appendSeal(at: segmentBytes - byteCount, to: &seal)
    return seal.withBytes { $0.elementsEqual(bytes) }
  }
}

/// The header and the name of a segment.
enum SegmentHeader {
  static let byteCount = 16
  private static let suffix = ".segment"

  static func append(number: UInt32, to buffer: inout ByteBuffer) {
    let start = buffer.count
    buffer.append(Array("LARDERSG".utf8))
    buffer.append(littleEndian: number)
    let sum = buffer.withBytes { crc32c(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    buffer.append(littleEndian: sum)
  }

  /// Whether the segment at `path` ends with its seal; false if there is none.
  static func isSealed(_ path: String, _ files: any StoreFiles) throws(StoreError) -> Bool {
    guard let count = try files.byteCount(of: path), count >= FrameHeader.byteCount else {
      return false
    }
    let end = try files.read(
      path, from: count - FrameHeader.byteCount, count: FrameHeader.byteCount)
    return end.withUnsafeBytes { FrameHeader.isSeal($0, of: count) }
  }

  /// The name of the segment with this number.
  static func name(of number: UInt32) -> String {
    let digits = "\(number)"
    return String(repeating: "0", count: max(0, 8 - digits.utf8.count)) + digits + suffix
  }

  /// The number in the name of a segment; nil if `name` is not the name of one.
  static func number(of name: String) -> UInt32? {
    guard name.hasSuffix(suffix), let number = UInt32(name.dropLast(suffix.utf8.count)),
      Self.name(of: number) == name
    else { return nil }
    return number
  }
}

private func loadLittleEndian<T: FixedWidthInteger & BitwiseCopyable>(
  _ bytes: UnsafeRawBufferPointer, at offset: Int
) -> T {
  T(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
}
