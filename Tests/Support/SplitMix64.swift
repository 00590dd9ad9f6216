/// A small random generator with a seed, so that a failed test can be repeated.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) {
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }

  /// Returns `count` random bytes.
  package mutating func bytes(_ count: Int) -> [UInt8] {
    // With a capacity of 0, the initializer would write to the empty array that all threads share.
    guard count > 0 else { return [] }
    // Without closures and ranges, which take most of the time in a debug build.
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      guard let bytes = buffer.baseAddress else { return }
      while initializedCount < count {
        bytes[initializedCount] = UInt8(truncatingIfNeeded: next())
        initializedCount += 1
      }
    }
  }
}
