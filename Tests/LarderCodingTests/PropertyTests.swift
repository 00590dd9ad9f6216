import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import Specimens

/// Random values of a type with fields of every kind round-trip.
///
/// A failure prints its seed, and `LARDER_SEED` repeats it.
@Suite struct PropertyTests {
  @Test("Random values round-trip.", arguments: [testSeed(), 1, 2026])
  func values(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for step in 0..<(1_000 * proofFactor) {
      let thing = random.thing(depth: 4)
      try expectRoundTrip(thing, "seed \(seed), step \(step)")
    }
  }

  /// The objects have a few shapes, in random order.
  @Test("Lists of objects with random shapes round-trip.", arguments: [testSeed(), 1])
  func shapes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for step in 0..<(1_000 * proofFactor) {
      let names = ["a", "b", "c", "d"]
      let list = (0..<random.below(12)).map { _ in
        Dynamic(names.shuffled(using: &random).prefix(random.below(5)).map { $0 })
      }
      let back = try decoded([Dynamic].self, from: encoded(list))
      #expect(back.map(\.fields) == list.map(\.fields), "seed \(seed), step \(step)")
    }
  }
}
