import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A migration beside counters, claims, replies for one caller, a disk budget and a backup.
@Suite(.timeLimit(.minutes(10))) struct MigrationSeamTests {
  /// The same numbers as version 2.
  private static let second = Schema<Int>(version: 2).reading(1, as: Int.self) { $0 }

  @Test(
    "Counters that are migrated meanwhile lose no increment, and keep the ends of their windows.",
    arguments: StoreKind.allCases)
  func counters(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let old = try fixture.store.cache(
      "a", of: Int.self, keyedBy: Int.self, lifetime: .seconds(600))
    for number in 0..<600 {
      try old.save(number, for: number)
      if number == 300 { fixture.clock.advance(by: .seconds(100)) }
    }
    let ends = try (0..<600).map { number in
      try #require(try old.entry(for: number)).savedAt.addingTimeInterval(600)
    }
    try fixture.reopen()
    let store = fixture.store
    let counts = try store.cache(
      "a", of: Int.self, keyedBy: Int.self, lifetime: .seconds(600), schema: Self.second)
    let added = Mutex([Int: Int]())
    onThreads(5) { thread in
      do {
        if thread == 4 {
          for _ in 0..<20 { _ = try store.migrate(counts) }
          return
        }
        var random = SplitMix64(seed: UInt64(thread))
        for _ in 0..<1000 {
          let key = Int.random(in: 0..<600, using: &random)
          try counts.increment(key)
          added.withLock { $0[key, default: 0] += 1 }
        }
      } catch {
        Issue.record(error)
      }
    }
    let sums = added.withLock { $0 }
    for number in 0..<600 {
      let entry = try #require(try counts.entry(for: number), "\(number)")
      #expect(entry.value == number + sums[number, default: 0])
      #expect(counts.expiryDate(of: entry) == ends[number], "\(number)")
    }
    #expect(try store.migrate(counts).migrated == 0)
  }

  @Test("A claim of an old entry that is being migrated has one winner: the entry that was there.")
  func claims() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let old = try fixture.store.cache("a", of: Int.self, keyedBy: Int.self)
    for number in 0..<600 where number.isMultiple(of: 2) { try old.save(-1, for: number) }
    try fixture.reopen()
    let store = fixture.store
    let claims = try store.cache("a", of: Int.self, keyedBy: Int.self, schema: Self.second)
    let wins = Mutex([Int: [Int]]())
    onThreads(5) { thread in
      do {
        guard thread < 4 else {
          _ = try store.migrate(claims)
          return
        }
        for number in 0..<600 {
          if try claims.saveIfAbsent(thread, for: number) == nil {
            wins.withLock { $0[number, default: []].append(thread) }
          }
        }
      } catch {
        Issue.record(error)
      }
    }
    let winners = wins.withLock { $0 }
    for number in 0..<600 {
      let value = try claims.value(for: number)
      if number.isMultiple(of: 2) {
        #expect(value == -1 && winners[number] == nil, "\(number)")
      } else {
        #expect(winners[number]?.count == 1 && winners[number]?.first == value, "\(number)")
      }
    }
  }

  @Test("A reply for one caller during a migration leaves the migrated entry.")
  func notShared() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let lifetime = try Lifetime(.seconds(100), thenStaleFor: .seconds(1000))
    try fixture.store.cache("a", of: Int.self, lifetime: lifetime).save(1, for: "k", validator: "v")
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(200))
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self, lifetime: lifetime, schema: Self.second)
    let entry = try await cache.refresh("k") { _ in
      _ = try store.migrate(cache)
      return .notShared(2)
    }
    #expect(entry?.value == 2 && entry?.isSaved == false)
    guard case .stale(let kept) = try cache.lookup(for: "k") else {
      Issue.record("not stale")
      return
    }
    #expect(kept.value == 1 && kept.validator == "v")
    // A condition on the entry before the migration still holds: its value is the same.
    let confirmed = try await cache.refresh("k") { _ in
      _ = try store.migrate(cache)
      return .unchanged
    }
    #expect(confirmed?.value == 1 && confirmed?.isStale == false)
  }

  @Test("Under a disk budget, a migration and backups go on while entries are evicted.")
  func diskBudget() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    var options = Store.Options()
    let full = try Store(at: place, options: options)
    let old = try full.cache("a", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for number in 0..<400 { try old.save(Self.value(number), for: number) }
    try full.close()
    options.diskBudget = 4 << 20
    let store = try Store(at: place, options: options)
    let cache = try store.cache(
      "a", of: Data.self, keyedBy: Int.self,
      schema: Schema(version: 2).reading(1, as: Data.self) { $0 }, coder: .bytes)
    onThreads(3) { thread in
      do {
        switch thread {
        case 0: for _ in 0..<5 { _ = try store.migrate(cache) }
        case 1: for number in 400..<700 { try cache.save(Self.value(number), for: number) }
        default:
          for round in 0..<3 {
            let backup = directory.path("backup \(round)")
            let restored = directory.path("restored \(round)")
            try store.backup(to: URL(filePath: backup))
            try Store.restore(from: URL(filePath: backup), to: URL(filePath: restored))
          }
        }
      } catch {
        Issue.record(error, "thread \(thread)")
      }
    }
    try await store.waitUntilIdle()
    #expect(store.statistics.disk.evictions > 0)
    #expect(try store.migrate(cache).migrated == 0)
    #expect(try expectIntact(cache) > 0)
    try store.close()
    for round in 0..<3 {
      let copy = try Store(at: URL(filePath: directory.path("restored \(round)")))
      let copied = try copy.cache(
        "a", of: Data.self, keyedBy: Int.self,
        schema: Schema(version: 2).reading(1, as: Data.self) { $0 }, coder: .bytes)
      #expect(try expectIntact(copied) > 0)
      try copy.close()
    }
  }

  private static func value(_ number: Int) -> Data {
    var random = SplitMix64(seed: UInt64(number))
    return Data(random.bytes(20_000))
  }

  /// Expects each entry that is left to have its value; returns their number.
  private func expectIntact(_ cache: Cache<Int, Data>) throws -> Int {
    let cursor = try cache.entries()
    var count = 0
    while let (key, entry) = try cursor.next() {
      #expect(try entry.get().value == Self.value(key), "\(key)")
      count += 1
    }
    return count
  }
}
