import CLarderLevelDB

/// The CRC32C of `bytes`, or of what `sum` was taken over followed by `bytes`.
package func crc32c(_ bytes: UnsafeRawBufferPointer, extending sum: UInt32 = 0) -> UInt32 {
  clarder_crc32c(sum, clarder_slice(bytes))
}
