/// The slots of a cluster, and which of them a key is in.
///
/// The slot of a key is the CRC-16 of its bytes, or of those between its first braces if there are
/// any, modulo 16,384; see the "Redis cluster specification".
package enum KeySlot {
  /// The number of slots.
  package static let count = 16_384

  /// The slot of a key: 0 to 16,383.
  package static func slot(of key: [UInt8]) -> Int {
    Int(crc(tag(of: key))) % count
  }

  /// What counts of a key: all of it, or what stands between its first `{` and the next `}`.
  private static func tag(of key: [UInt8]) -> ArraySlice<UInt8> {
    guard let opening = key.firstIndex(of: UInt8(ascii: "{")) else { return key[...] }
    let rest = key[(opening + 1)...]
    guard let closing = rest.firstIndex(of: UInt8(ascii: "}")), closing > rest.startIndex else {
      return key[...]
    }
    return rest[..<closing]
  }

  /// CRC-16 with the polynomial 0x1021 and 0 at the beginning, as XMODEM has it.
  private static func crc(_ bytes: ArraySlice<UInt8>) -> UInt16 {
    var crc: UInt16 = 0
    for byte in bytes { crc = crc << 8 ^ table[Int(UInt8(crc >> 8) ^ byte)] }
    return crc
  }

  private static let table: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
  }
}
