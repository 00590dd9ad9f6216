import Larder
import LarderTestSupport
import Testing

/// CRC32C gives the same sums by instruction and by table, since files move between machines.
@Suite struct ChecksumTests {
  // From RFC 3720, appendix B.4, and the usual check value.
  @Test(
    "Known bytes have their published CRC32C sums.",
    arguments: [
      ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
      ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
      ([UInt8](0..<32), 0x46DD_794E),
      (Array("123456789".utf8), 0xE306_9283),
      ([], 0),
    ] as [([UInt8], UInt32)])
  func knownSums(bytes: [UInt8], sum: UInt32) {
    bytes.withUnsafeBytes { bytes in
      #expect(crc32c(bytes) == sum)
      #expect(crc32cByTable(bytes) == sum)
    }
  }

  @Test(
    "Instruction and table agree wherever the bytes are cut.",
    arguments: [1, .random(in: 0 ... .max)] as [UInt64])
  func agreement(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    // Around multiples of 768 bytes, which are summed in three streams.
    for count in Array(0..<200) + Array(760..<784) + Array(1_530..<1_550) + [100_000] {
      let bytes = random.bytes(count)
      let cut = Int.random(in: 0...count, using: &random)
      bytes.withUnsafeBytes { bytes in
        let first = UnsafeRawBufferPointer(rebasing: bytes[..<cut])
        let second = UnsafeRawBufferPointer(rebasing: bytes[cut...])
        let sum = crc32c(bytes)
        #expect(crc32cByTable(bytes) == sum, "seed \(seed)")
        #expect(crc32c(second, extending: crc32c(first)) == sum, "seed \(seed)")
        #expect(crc32cByTable(second, extending: crc32cByTable(first)) == sum, "seed \(seed)")
      }
    }
  }
}
