import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Random operations and sweeps on a store and on a plain dictionary agree.
///
/// A failure names its seed. To run it again, put the seed into the argument list.
@Suite struct SweepModelTests {
  private static let names = ["one", "two"]
  private static let keys = ["", "a", "ab", "b", "\u{0}", "zzz", "k1", "k2"]
  private static let lifetimes: [Lifetime] = [
    .seconds(100), .fresh(for: .seconds(100), thenStaleFor: .seconds(50)), .seconds(1000),
    .seconds(6), .unlimited,
  ]

  /// An entry of the model.
  private struct Saved {
    let value: Int
    let savedAt: Date
    /// The lifetime of its cache since it was saved; nil if that changed.
    var lifetime: Lifetime?
  }

  @Test(
    "A sweep deletes every due entry and no live one.", arguments: StoreKind.allCases,
    [1, 2026, UInt64.random(in: 0 ... .max)])
  func agree(kind: StoreKind, seed: UInt64) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let clock = fixture.clock
    var random = SplitMix64(seed: seed)
    var lifetimes = Dictionary(uniqueKeysWithValues: Self.names.map { ($0, Self.lifetimes[0]) })
    var model = Dictionary(uniqueKeysWithValues: Self.names.map { ($0, [String: Saved]()) })
    var caches = try open(fixture, lifetimes)
    var sweeps = 0

    for step in 0..<(isProof ? 80_000 : 2000) {
      let place: Comment = "seed \(seed), step \(step)"
      let name = Self.names.randomElement(using: &random) ?? ""
      let key = Self.keys.randomElement(using: &random) ?? ""
      let now = clock.now()
      let cache = try #require(caches[name])
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<40:
        try cache.save(step, for: key)
        model[name]?[key] = Saved(value: step, savedAt: now, lifetime: lifetimes[name])
      case 40..<46:
        try cache.remove(key)
        model[name]?[key] = nil
      case 46..<54:
        if try cache.touch(key), let old = model[name]?[key] {
          model[name]?[key] = Saved(value: old.value, savedAt: now, lifetime: lifetimes[name])
        }
      case 54..<75: clock.advance(by: .seconds(Double.random(in: 0...30, using: &random)))
      case 75..<77: clock.set(now + Double.random(in: -500...500, using: &random))
      case 77..<93:
        let deleted = try fixture.store.sweep()
        sweeps += deleted
        let gone = try sweep(&model, of: caches, lifetimes, at: now, place)
        #expect(deleted == gone, place)
        let endless = Set(
          caches.values.filter { $0.core.lifetime == .unlimited }.map(\.core.id))
        #expect(try fixture.disagreement(at: now, endless: endless) == nil, place)
      case 93:
        try cache.removeAll()
        model[name] = [:]
      default:
        let lifetime = Self.lifetimes.randomElement(using: &random) ?? .unlimited
        lifetimes[name] = lifetime
        for (key, saved) in model[name] ?? [:] where saved.lifetime != lifetime {
          model[name]?[key]?.lifetime = nil
        }
        try fixture.reopen()
        // One of the caches may keep its registered lifetime.
        caches = try open(fixture, lifetimes)
      }
    }
    #expect(sweeps > 50)
  }

  private func open(
    _ fixture: Fixture, _ lifetimes: [String: Lifetime]
  ) throws -> [String: Cache<String, Int>] {
    try Dictionary(
      uniqueKeysWithValues: lifetimes.map { name, lifetime in
        (name, try fixture.store.cache(name, of: Int.self, lifetime: lifetime))
      })
  }

  /// Compares the entries that a sweep left with the model, and removes the deleted ones from it.
  ///
  /// Live entries must be there. An expired entry must be gone once its bucket has ended, unless
  /// its lifetime was changed meanwhile. Returns how many entries were deleted.
  private func sweep(
    _ model: inout [String: [String: Saved]], of caches: [String: Cache<String, Int>],
    _ lifetimes: [String: Lifetime], at now: Date, _ place: Comment
  ) throws -> Int {
    var gone = 0
    for (name, entries) in model {
      let cache = try #require(caches[name])
      let lifetime = try #require(lifetimes[name])
      for (key, saved) in entries {
        let kind = try cache.lookup(for: key).kind
        if lifetime.freshness(of: saved.savedAt, at: now) != .expired {
          let value: Int? =
            switch try cache.lookup(for: key) {
            case .fresh(let entry), .stale(let entry): entry.value
            case .expired, .missing: nil
            }
          #expect(value == saved.value, place)
          continue
        }
        #expect(kind == "expired" || kind == "missing", place)
        if let own = saved.lifetime, let expiry = own.expiry(from: saved.savedAt),
          Double(ExpiryNotes.bucket(savedAt: saved.savedAt, expiresAt: expiry))
            <= now.timeIntervalSinceReferenceDate
        {
          #expect(kind == "missing", place)
        }
        guard kind == "missing" else { continue }
        model[name]?[key] = nil
        gone += 1
      }
    }
    return gone
  }
}
