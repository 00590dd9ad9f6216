import Larder
import LarderTestSupport
import Testing

/// Compression of the end of a buffer.
@Suite struct SnappyTests {
  /// Returns `count` bytes: a share of them random, the others equal.
  private static func bytes(_ count: Int, random share: Double, seed: UInt64) -> [UInt8] {
    var random = SplitMix64(seed: seed)
    return (0..<count).map { _ in
      let bits = random.next()
      return Double(bits >> 11) * 0x1p-53 < share ? UInt8(truncatingIfNeeded: bits) : 7
    }
  }

  @Test(
    "Bytes of any size and kind come back, and what was before them stays.",
    arguments: [1, 2, 7, 100, 4096, 70_000, 1 << 20], [0, 0.05, 0.3, 1])
  func roundTrip(count: Int, share: Double) {
    let bytes = Self.bytes(count, random: share, seed: UInt64(count))
    var buffer = ByteBuffer()
    buffer.append([1, 2, 3])
    buffer.append(bytes)
    let isCompressed = Snappy.compress(&buffer, from: 3)
    let all = [UInt8](buffer)
    #expect(all.prefix(3) == [1, 2, 3])
    guard isCompressed else {
      #expect(all.dropFirst(3).elementsEqual(bytes))
      #expect(share > 0.05 || count <= 7)
      return
    }
    #expect(all.count - 3 <= count / 8 * 7)
    #expect(share < 1)
    let compressed = Array(all.dropFirst(3))
    let found = Snappy.decompressedCount(compressed.span.bytes)
    let isValid = Snappy.isValid(compressed.span.bytes)
    #expect(found == count && isValid)
    var back = ByteBuffer()
    back.append([9])
    let isBelowLimit = Snappy.decompress(compressed.span.bytes, limit: count - 1, to: &back)
    #expect(!isBelowLimit && back.count == 1)
    let isWhole = Snappy.decompress(compressed.span.bytes, limit: count, to: &back)
    #expect(isWhole && [UInt8](back) == [9] + bytes)
  }

  @Test("What is no compressed text is refused, and nothing is appended.")
  func invalid() {
    for bytes in [[], [0x80], [255, 255, 255, 255, 255], [4, 3 << 2, 1], [4, 1, 1]] as [[UInt8]] {
      var buffer = ByteBuffer()
      buffer.append([1])
      let isWhole = Snappy.decompress(bytes.span.bytes, limit: 1 << 30, to: &buffer)
      let isValid = Snappy.isValid(bytes.span.bytes)
      #expect(!isWhole && !isValid && [UInt8](buffer) == [1])
    }
  }
}
