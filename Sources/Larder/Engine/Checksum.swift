import CLarder

/// The CRC32C of `bytes`, or of the data that `sum` was computed over followed by `bytes`.
package func crc32c(_ bytes: UnsafeRawBufferPointer, extending sum: UInt32 = 0) -> UInt32 {
  clarder_crc32c(sum, bytes.baseAddress, bytes.count)
}

/// The form in which LevelDB stores a CRC32C, in its logs and tables.
package func maskedForLevelDB(_ sum: UInt32) -> UInt32 { (sum >> 15 | sum << 17) &+ 0xA282_EAD8 }

/// The same as ``crc32c(_:extending:)``, as on processors without an instruction for it.
///
/// For tests.
package func crc32cByTable(_ bytes: UnsafeRawBufferPointer, extending sum: UInt32 = 0) -> UInt32 {
  clarder_crc32c_by_table(sum, bytes.baseAddress, bytes.count)
}
