/// A digest of the text written to it: FNV-1a with 128 bits (RFC 9923), of the UTF-8 bytes.
///
/// It is not cryptographic: it tells stores apart that differ by accident. A person who chooses
/// the entries can make two stores with the same digest.
struct Digest: TextOutputStream {
  private static let prime: UInt128 = 1 << 88 | 0x13B

  private var state: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d

  mutating func write(_ string: String) {
    var string = string
    string.withUTF8 { bytes in
      for byte in bytes { state = (state ^ UInt128(byte)) &* Self.prime }
    }
  }

  /// The digest in hex.
  var text: String {
    let digits = String(state, radix: 16)
    return String(repeating: "0", count: 32 - digits.count) + digits
  }
}
