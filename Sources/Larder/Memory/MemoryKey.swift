/// The key of a value in memory, with its hash.
package struct MemoryKey {
  typealias Words = (UInt64, UInt64, UInt64)

  /// The cache that the key belongs to.
  let cacheID: UInt64
  /// The user's encoded key, which its owner lends.
  let bytes: UnsafeRawBufferPointer
  /// All bytes of a short key; zeros for a longer one.
  ///
  /// Two short keys of the same length are equal if their words are.
  let words: Words
  let hash: UInt64

  /// The most bytes of a short key.
  private static let shortBytes = MemoryLayout<Words>.size

  @inline(__always)
  var isShort: Bool { bytes.count <= Self.shortBytes }
}

/// A hash of keys for tables in memory, seeded anew in each process.
///
/// The mixing step is that of wyhash (Wang Yi, public domain): the two halves of a 128-bit product,
/// combined by exclusive or. The seed is random, because keys may come from a network: a stranger
/// cannot choose keys whose hashes are equal.
package struct KeyHash: Sendable {
  private let seed: UInt64
  private let secret: UInt64

  init() {
    var random = SystemRandomNumberGenerator()
    self.init(using: &random)
  }

  package init(using random: inout some RandomNumberGenerator) {
    (seed, secret) = (random.next(), random.next())
  }

  /// Makes the key of a value in memory from the user's encoded key, which it does not copy, and
  /// the id of a cache.
  @inline(__always)
  package func key(_ bytes: UnsafeRawBufferPointer, in cacheID: UInt64 = 0) -> MemoryKey {
    let count = bytes.count
    func word(_ offset: Int) -> UInt64 {
      bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
    func half(_ offset: Int) -> UInt64 {
      UInt64(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    var words: MemoryKey.Words = (0, 0, 0)
    var state = mix(seed ^ cacheID, secret ^ UInt64(truncatingIfNeeded: count))
    // Loads overlap where the length is not a multiple of their size.
    switch count {
    case 0: break
    case 1..<4:
      words.0 = UInt64(bytes[0]) << 16 | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1])
    case 4..<8: words.0 = half(0) << 32 | half(count - 4)
    case 8...16: (words.0, words.1) = (word(0), word(count - 8))
    case 17...24: words = (word(0), word(8), word(count - 8))
    default:
      var offset = 0
      while offset + 16 < count {
        state = mix(word(offset) ^ secret, word(offset + 8) ^ state)
        offset += 16
      }
      state = mix(word(count - 16) ^ secret, word(count - 8) ^ state)
    }
    state = mix(words.0 ^ secret, words.1 ^ state)
    let hash = mix(words.2 ^ secret, state ^ seed)
    return MemoryKey(cacheID: cacheID, bytes: bytes, words: words, hash: hash)
  }
}

/// The two halves of the product, combined.
@inline(__always)
private func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
  let product = left.multipliedFullWidth(by: right)
  return product.high ^ product.low
}
