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

  @inline(__always)
  package func callAsFunction(_ key: UnsafeRawBufferPointer) -> UInt64 {
    let count = key.count
    guard let start = key.baseAddress, count > 0 else { return mix(seed, secret) }
    func word(_ offset: Int) -> UInt64 {
      start.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
    func half(_ offset: Int) -> UInt64 {
      UInt64(start.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    var state = seed ^ UInt64(truncatingIfNeeded: count)
    let (first, last): (UInt64, UInt64)
    switch count {
    case 8...:
      var offset = 0
      while offset + 16 < count {
        state = mix(word(offset) ^ secret, word(offset + 8) ^ state)
        offset += 16
      }
      // The last 16 bytes; they overlap with those before, or with each other.
      first = word(max(0, count - 16))
      last = word(count - 8)
    case 4...: (first, last) = (half(0), half(count - 4))
    default:
      let bytes = key
      first = UInt64(bytes[0]) << 16 | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1])
      last = 0
    }
    return mix(secret ^ state, mix(first ^ secret, last ^ state))
  }
}

/// The two halves of the product, combined.
@inline(__always)
private func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
  let product = left.multipliedFullWidth(by: right)
  return product.high ^ product.low
}
