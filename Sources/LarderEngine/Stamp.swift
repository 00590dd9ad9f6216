// A stamp is what a commit leaves in a value: when it was committed, and a checksum over all of it.
// Integers are little-endian.
//
//   offset  bytes  field
//   0       24     the value's own
//   24      8      commit sequence
//   32      4      CRC32C over bytes 0-31, the physical key, and everything from byte 36 on
//   36      rest   the value's own
//
// This layout is on users' disks: it is the tail of the record header (see StorageFormat.md).

/// Reads and writes the commit sequence and the checksum of a stamped value.
package enum Stamp {
  package static var sequenceOffset: Int { 24 }
  package static var checksumOffset: Int { sequenceOffset + 8 }
  /// How long a stamped value is at least.
  package static var byteCount: Int { checksumOffset + 4 }

  /// The commit sequence of a stamped value, or nil when the value is too short to have one.
  package static func sequence(of value: RawSpan) -> UInt64? {
    guard value.byteCount >= byteCount else { return nil }
    return UInt64(
      littleEndian: value.unsafeLoadUnaligned(fromByteOffset: sequenceOffset, as: UInt64.self))
  }

  /// Whether the value under `key` is what was committed, to the last bit.
  package static func isIntact(_ value: RawSpan, key: RawSpan) -> Bool {
    guard value.byteCount >= byteCount else { return false }
    let stored = value.unsafeLoadUnaligned(fromByteOffset: checksumOffset, as: UInt32.self)
    return value.withUnsafeBytes { value in
      key.withUnsafeBytes { key in checksum(of: value, key: key) }
    } == UInt32(littleEndian: stored)
  }

  static func seal(
    value: UnsafeMutableRawBufferPointer, key: UnsafeRawBufferPointer, sequence: UInt64
  ) {
    value.storeBytes(
      of: sequence.littleEndian, toByteOffset: sequenceOffset, as: UInt64.self)
    let sum = checksum(of: UnsafeRawBufferPointer(value), key: key)
    value.storeBytes(of: sum.littleEndian, toByteOffset: checksumOffset, as: UInt32.self)
  }

  private static func checksum(of value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer)
    -> UInt32
  {
    var sum = crc32c(UnsafeRawBufferPointer(rebasing: value[..<checksumOffset]))
    sum = crc32c(key, extending: sum)
    return crc32c(UnsafeRawBufferPointer(rebasing: value[byteCount...]), extending: sum)
  }
}
