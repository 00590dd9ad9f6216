import CLarder

// A stamp is 12 bytes of a value, at an offset that the owner of the value chooses. The commit
// fills them in. Integers are little-endian.
//
//   offset      bytes   field
//   0           offset  the value's own
//   offset      8       commit sequence
//   offset + 8  4       CRC32C over the bytes before it, the physical key, and those behind it
//   offset + 12 rest    the value's own
//
// Stamps are on users' disks, in the header of each record (see StorageFormat.md).

/// The place in a value where a commit leaves its sequence, and a checksum over all of the value.
package struct Stamp: Hashable, Sendable {
  // Two bytes, so that a row of a batch has room for it beside its kind.
  private let place: UInt16

  /// - Parameter offset: The number of bytes before the stamp, below 65,536.
  package init(at offset: Int) { place = UInt16(offset) }

  /// The number of bytes before the stamp.
  package var offset: Int { Int(place) }
  /// The number of bytes up to the end of the stamp: a stamped value is no shorter.
  package var end: Int { Int(place) + 12 }

  private var checksumOffset: Int { offset + 8 }

  /// The commit sequence of a stamped value, or nil if the value is too short to have one.
  package func sequence(of value: RawSpan) -> UInt64? {
    guard value.byteCount >= end else { return nil }
    return UInt64(
      littleEndian: value.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// Whether the value under `key` is the one that was committed, to the last bit.
  package func isIntact(_ value: RawSpan, key: RawSpan) -> Bool {
    guard value.byteCount >= end else { return false }
    let stored = value.unsafeLoadUnaligned(fromByteOffset: checksumOffset, as: UInt32.self)
    return value.withUnsafeBytes { value in
      key.withUnsafeBytes { key in checksum(of: value, key: key) }
    } == UInt32(littleEndian: stored)
  }

  /// Fills in the stamp of a value.
  func seal(
    value: UnsafeMutableRawBufferPointer, key: UnsafeRawBufferPointer, sequence: UInt64
  ) {
    value.storeBytes(of: sequence.littleEndian, toByteOffset: offset, as: UInt64.self)
    let sum = checksum(of: UnsafeRawBufferPointer(value), key: key)
    value.storeBytes(of: sum.littleEndian, toByteOffset: checksumOffset, as: UInt32.self)
  }

  private func checksum(of value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) -> UInt32 {
    var sum = crc32c(UnsafeRawBufferPointer(rebasing: value[..<checksumOffset]))
    sum = crc32c(key, extending: sum)
    return crc32c(UnsafeRawBufferPointer(rebasing: value[end...]), extending: sum)
  }
}

/// The CRC32C of `bytes`, or of the data that `sum` was computed over followed by `bytes`.
package func crc32c(_ bytes: UnsafeRawBufferPointer, extending sum: UInt32 = 0) -> UInt32 {
  clarder_crc32c(sum, bytes.baseAddress, bytes.count)
}

/// The form in which LevelDB stores a CRC32C, in its logs and tables.
package func maskedForLevelDB(_ sum: UInt32) -> UInt32 { (sum >> 15 | sum << 17) &+ 0xA282_EAD8 }

/// As ``crc32c(_:extending:)``, without the processor's instruction.
///
/// For tests.
package func crc32cByTable(_ bytes: UnsafeRawBufferPointer, extending sum: UInt32 = 0) -> UInt32 {
  clarder_crc32c_by_table(sum, bytes.baseAddress, bytes.count)
}
