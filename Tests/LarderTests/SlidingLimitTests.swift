import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Caches whose entries slide up to a time after they were saved.
@Suite struct SlidingLimitTests {
  private static let window = 160.0
  private static let limit = 500.0

  private func open(
    _ fixture: Fixture, expiry: Expiry = .sliding(upTo: .seconds(limit)), stale: Double = 0,
    coder: Coder<Int> = .binary
  ) throws -> Cache<String, Int> {
    try fixture.store.cache(
      "n", of: Int.self,
      lifetime: .fresh(for: .seconds(Self.window), thenStaleFor: .seconds(stale)), expiry: expiry,
      coder: coder)
  }

  /// Reads the value at an age, and waits until its lifetime has begun anew.
  private func read(
    _ cache: Cache<String, Int>, _ fixture: Fixture, at date: Date
  ) throws -> Int? {
    fixture.clock.set(date)
    defer { cache.core.slides?.waitUntilIdle() }
    return try cache.value(for: "a")
  }

  @Test(
    "Reads keep an entry until the limit, and not longer, across openings.",
    arguments: StoreKind.allCases)
  func reads(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var cache = try open(fixture)
    try cache.save(1, for: "a", validator: "v", tags: ["t"])
    let savedAt = fixture.clock.now()
    for age in [100.0, 200, 300, 400, 450, 499, 499.9] {
      #expect(try read(cache, fixture, at: savedAt + age) == 1, "\(age)")
      // Another limit, and none, do not move the end.
      try fixture.reopen()
      for expiry in [Expiry.sliding, .sinceSaved, .sliding(upTo: .days(1))] where age >= 200 {
        cache = try open(fixture, expiry: expiry)
        try fixture.reopen()
      }
      cache = try open(fixture)
    }
    let entry = try #require(try cache.entry(for: "a"))
    #expect(cache.expiryDate(of: entry) == savedAt + Self.limit)
    #expect(entry.validator == "v" && entry.tags == ["t"])
    #expect(try read(cache, fixture, at: savedAt + Self.limit) == nil)
    #expect(try cache.lookup(for: "a").kind == "expired")
    fixture.clock.advance(by: .seconds(3))
    #expect(try fixture.store.sweep() == 1)
  }

  @Test("After the limit an entry is stale as long as after each other fresh time.")
  func stale() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try open(fixture, stale: 50)
    try cache.save(1, for: "a")
    let savedAt = fixture.clock.now()
    for age in [100.0, 200, 300, 400] { #expect(try read(cache, fixture, at: savedAt + age) == 1) }
    for (age, kind) in [(500, "stale"), (549, "stale"), (550, "expired")] {
      fixture.clock.set(savedAt + Double(age))
      #expect(try cache.lookup(for: "a").kind == kind, "\(age)")
    }
  }

  @Test("A load is asked for once the limit is over.")
  func loads() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try open(fixture)
    try cache.save(1, for: "a")
    let savedAt = fixture.clock.now()
    for age in [100.0, 200, 300, 400, 499] {
      fixture.clock.set(savedAt + age)
      let value = try await cache.value(for: "a") { 2 }
      #expect(value == 1)
      cache.core.slides?.waitUntilIdle()
    }
    fixture.clock.set(savedAt + Self.limit)
    let value = try await cache.value(for: "a") { 2 }
    #expect(value == 2)
    // The loaded value is a new one.
    #expect(try read(cache, fixture, at: savedAt + Self.limit + 100) == 2)
    #expect(try read(cache, fixture, at: savedAt + Self.limit + 250) == 2)
  }

  @Test("An unlimited limit, and one that is shorter than the fresh time, change no lifetime.")
  func otherLimits() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let short = try fixture.store.cache(
      "short", of: Int.self, lifetime: .seconds(Self.window),
      expiry: .sliding(upTo: .seconds(100)))
    let endless = try open(fixture, expiry: .sliding(upTo: .unlimited))
    let savedAt = fixture.clock.now()
    try short.save(1, for: "a")
    try endless.save(1, for: "a")
    for age in stride(from: 50.0, through: 2000, by: 50) {
      #expect((try read(short, fixture, at: savedAt + age) == nil) == (age >= Self.window))
      #expect(try read(endless, fixture, at: savedAt + age) == 1)
    }
    #expect(Expiry.sliding(upTo: .unlimited) == .sliding && "\(Expiry.sliding)" == "sliding")
    #expect("\(Expiry.sliding(upTo: .hours(12)))" == "sliding up to 12 hours")
  }

  @Test("The end is a field of the record, which only what begins anew removes.")
  func record() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    var cache = try open(fixture)
    try cache.save(1, for: "a", validator: "v", tags: ["t"])
    let savedAt = fixture.clock.now()
    func end() throws -> Date? {
      let (key, value) = try fixture.onlyRecord()
      let record = try Record(value.span.bytes, under: key.span.bytes)
      #expect(record.tags != nil)
      #expect((value[3] & 4 == 0) == (record.slidesUntil == nil))
      return record.slidesUntil
    }
    #expect(try end() == nil)
    #expect(try read(cache, fixture, at: savedAt + 100) == 1)
    #expect(try end() == savedAt + Self.limit)
    try fixture.reopen()
    cache = try open(fixture, coder: .json)
    try fixture.store.migrate(cache)
    #expect(try end() == savedAt + Self.limit)
    try cache.update("a") { $0 = 2 }
    #expect(try end() == savedAt + Self.limit)
    try cache.increment("a")
    #expect(try end() == savedAt + Self.limit)
    try cache.touch("a")
    #expect(try end() == nil)
    #expect(try cache.value(for: "a") == 3)
  }

  @Test("An entry that has slid is swept at its end, also in a cache whose lifetime is unlimited.")
  func sweptWithoutLifetime() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try open(fixture)
    try cache.save(1, for: "a")
    let savedAt = fixture.clock.now()
    #expect(try read(cache, fixture, at: savedAt + 100) == 1)
    try fixture.reopen()
    _ = try fixture.store.cache("n", of: Int.self, lifetime: .unlimited)
    fixture.clock.set(savedAt + Self.limit + 300)
    #expect(try fixture.store.contents()["n"]?.expired.entries == 1)
    #expect(try fixture.store.sweep() == 1)
  }

  @Test("An entry near its limit does not shorten the others' lifetime in a salvage.")
  func salvage() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try open(fixture)
    try cache.save(1, for: "a")
    let savedAt = fixture.clock.now()
    for age in [100.0, 200, 300, 400, 490] { _ = try read(cache, fixture, at: savedAt + age) }
    try cache.save(2, for: "b")
    let engine = try #require(fixture.engine as? LevelDBEngine)
    let recovered = try RecoveredSettings(ofCache: cache.core.id, in: engine)
      .registration(id: cache.core.id)
    #expect(recovered.lifetime == .seconds(Self.window))
    #expect(recovered.features == .ownLifetimes)
  }

  @Test(
    "A cache that slides up to a limit agrees with a model.",
    arguments: [StoreKind.disk, .memory, .segments], [1, UInt64.random(in: 0 ... .max)])
  func model(kind: StoreKind, seed: UInt64) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var random = SplitMix64(seed: seed)
    var cache = try open(fixture, stale: 40)
    var entry: (savedAt: Date, fresh: Double, end: Date)?
    for step in 0..<1500 {
      let now = fixture.clock.now()
      let isFresh = entry.map { now < min($0.savedAt + $0.fresh, $0.end) } ?? false
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        let fresh = Bool.random(using: &random) ? 30 : Self.window
        try cache.save(
          step, for: "a",
          lifetime: fresh == Self.window
            ? nil : .fresh(for: .seconds(fresh), thenStaleFor: .seconds(40)))
        entry = (now, fresh, now + Self.limit)
      case 1:
        #expect(try cache.touch("a") == (entry != nil))
        if let fresh = entry?.fresh { entry = (now, fresh, now + Self.limit) }
      case 2:
        let change: LifetimeUpdate = Bool.random(using: &random) ? .keep : .restart
        try cache.update("a", lifetime: change) { $0 = step }
        if isFresh {
          if change == .restart { entry?.savedAt = now }
        } else {
          entry = (now, Self.window, now + Self.limit)
        }
      case 3:
        try fixture.reopen()
        cache = try open(
          fixture, stale: 40, coder: Bool.random(using: &random) ? .binary : .json)
        if Bool.random(using: &random) { try fixture.store.migrate(cache) }
      case 4..<14:
        #expect((try cache.value(for: "a") != nil) == isFresh, "seed \(seed), step \(step)")
        cache.core.slides?.waitUntilIdle()
        if let found = entry, isFresh, found.savedAt + found.fresh < found.end,
          now >= found.savedAt + found.fresh / 16
        {
          entry?.savedAt = now
        }
      default: fixture.clock.advance(by: .seconds(Int.random(in: 1...60, using: &random)))
      }
      let later = fixture.clock.now()
      let kind =
        entry.map { entry -> String in
          let end = min(entry.savedAt + entry.fresh, entry.end)
          return later < end ? "fresh" : later < end + 40 ? "stale" : "expired"
        } ?? "missing"
      // A lookup of a fresh entry is a read, too.
      if kind != "fresh" {
        #expect(try cache.lookup(for: "a").kind == kind, "seed \(seed), step \(step)")
      }
    }
  }
}
