import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Random operations on a store with budgets keep the byte counts right and exceed no budget.
///
/// Only evictions make entries disappear. A failure names its seed. To run it again, put the seed
/// into the argument list.
@Suite struct BudgetModelTests {
  private static let names = ["one", "two", "three"]
  private static let lifetimes: [Lifetime] = [.seconds(200), .seconds(2000), .unlimited]

  /// The settings of the caches and of the store.
  private struct Settings {
    var lifetimes: [Lifetime]
    var budgets: [Int?]
    var whole: Int?

    func counts(_ at: Int) -> Bool { smallest(at) != nil }

    /// The smallest budget that covers a cache.
    func smallest(_ at: Int) -> Int? { [budgets[at], whole].compactMap(\.self).min() }

    static func random(_ random: inout SplitMix64) -> Settings {
      Settings(
        lifetimes: names.map { _ in
          BudgetModelTests.lifetimes.randomElement(using: &random) ?? .unlimited
        },
        budgets: names.map { _ in [nil, 2_000, 6_000].randomElement(using: &random) ?? nil },
        whole: [nil, 5_000, 12_000].randomElement(using: &random) ?? nil)
    }
  }

  @Test(
    "Counts are right and budgets are kept at every step.", arguments: StoreKind.allCases,
    [1, 2026, 15_271_801_429_905_857_773, UInt64.random(in: 0 ... .max)])
  func budgets(kind: StoreKind, seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var settings = Settings.random(&random)
    let fixture = try Fixture(kind, byteBudget: settings.whole)
    defer { fixture.end() }
    var caches = try open(fixture, settings)
    // The last value of each key, whether it was evicted since or not.
    var model = Self.names.map { _ in [String: Data]() }

    for step in 0..<(isProof ? 16_000 : 400) {
      let place: Comment = "seed \(seed), step \(step)"
      let at = Int.random(in: 0..<Self.names.count, using: &random)
      let key = "k\(Int.random(in: 0..<40, using: &random))"
      let value = bytes(
        Int.random(in: 0...400, using: &random), .random(in: 0...255, using: &random))
      var hasSaved = false
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<50:
        try caches[at].save(value, for: key)
        model[at][key] = value
        hasSaved = true
        #expect(try caches[at].lookup(for: key).kind == "fresh", place)
      case 50..<60:
        let other = "k\(Int.random(in: 0..<40, using: &random))"
        try fixture.store.write { batch in
          batch.save(bytes(3), for: key, in: caches[at])
          batch.remove(other, from: caches[at])
          batch.save(value, for: key, in: caches[at])
        }
        model[at][other] = nil
        model[at][key] = value
        hasSaved = true
      case 60..<65:
        try caches[at].remove(key)
        model[at][key] = nil
      case 65..<70: try caches[at].touch(key)
      case 70..<85: fixture.clock.advance(by: .seconds(Double.random(in: 0...40, using: &random)))
      case 85..<90: try fixture.store.sweep()
      case 90: try caches[at].validate()
      case 91:
        try caches[at].removeAll()
        model[at] = [:]
      case 92..<95:
        // Whatever is counted can be evicted, so there is room for this and what a touch adds.
        guard let budget = settings.smallest(at) else { break }
        let value = bytes(budget - (2 + key.utf8.count + 36 + 8), 9)
        try caches[at].save(value, for: key)
        model[at][key] = value
        hasSaved = true
      case 95..<97: break
      default:
        settings = .random(&random)
        fixture.byteBudget = settings.whole
        try fixture.reopen()
        caches = try open(fixture, settings)
        model = try caches.map { try contents($0, model) }
      }
      let found = try caches[at].lookup(for: key)
      if case .fresh(let entry) = found { #expect(entry.value == model[at][key], place) }
      // Only a budget lets anything go before its time.
      if !settings.counts(at), settings.lifetimes[at] == .unlimited {
        #expect((found.kind == "fresh") == (model[at][key] != nil), place)
      }
      try check(fixture, caches, settings, place)
      guard hasSaved else { continue }
      let held = try fixture.heldBytes()
      #expect(held[caches[at].core.id] ?? 0 <= settings.budgets[at] ?? .max, place)
      #expect(held.values.reduce(0, +) <= settings.whole ?? .max, place)
    }
  }

  private func open(_ fixture: Fixture, _ settings: Settings) throws -> [Cache<String, Data>] {
    try Self.names.indices.map { at in
      try fixture.store.cache(
        Self.names[at], of: Data.self, lifetime: settings.lifetimes[at], coder: .bytes,
        byteBudget: settings.budgets[at])
    }
  }

  /// The saved entries that are left.
  private func contents(
    _ cache: Cache<String, Data>, _ model: [[String: Data]]
  ) throws -> [String: Data] {
    let at = Self.names.firstIndex(of: cache.name) ?? 0
    return try model[at].filter { try cache.lookup(for: $0.key).kind != "missing" }
  }

  /// Checks the counts.
  private func check(
    _ fixture: Fixture, _ caches: [Cache<String, Data>], _ settings: Settings, _ place: Comment
  ) throws {
    for (at, cache) in caches.enumerated() {
      if settings.counts(at) {
        #expect(try fixture.miscount(of: cache) == nil, place)
      } else {
        #expect(fixture.countedBytes(cache) == nil, place)
      }
    }
  }
}
