import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A sweep deletes expired entries by their notes, with the notes, and nothing else.
@Suite struct SweepTests {
  @Test(
    "Expired entries are deleted with their notes, and the rest stays.",
    arguments: StoreKind.allCases)
  func sweeps(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let days = try fixture.store.cache("days", of: Int.self)
    let minutes = try fixture.store.cache("minutes", of: Int.self, lifetime: .seconds(60))
    let endless = try fixture.store.cache("endless", of: Int.self, lifetime: .unlimited)
    try days.save(1, for: "old")
    try minutes.save(1, for: "a")
    try minutes.save(2, for: "b")
    try endless.save(1, for: "a")
    fixture.clock.advance(by: .seconds(30))
    try minutes.save(3, for: "b")

    fixture.clock.advance(by: .seconds(29))
    #expect(try fixture.store.sweep() == 0)
    fixture.clock.advance(by: .seconds(1))
    #expect(try fixture.store.sweep() == 1)
    #expect(try minutes.lookup(for: "a").kind == "missing")
    #expect(try minutes.value(for: "b") == 3)
    #expect(try fixture.buckets(of: minutes)["b"]?.count == 1)
    #expect(try fixture.rows(in: .records).count == 3)

    fixture.clock.advance(by: .seconds(8 * 86_400))
    #expect(try fixture.store.sweep() == 2)
    #expect(try fixture.store.sweep() == 0)
    #expect(try fixture.rows(in: .notes).isEmpty)
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try endless.value(for: "a") == 1)
  }

  @Test("An entry is kept to the end of its stale time, and of its bucket.")
  func buckets() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    // 640 seconds in all, in buckets of 8.
    let cache = try fixture.store.cache(
      "cache", of: Int.self, lifetime: .fresh(for: .seconds(600), thenStaleFor: .seconds(40)))
    let start = fixture.clock.now()
    fixture.clock.set(start + 0.5)
    let bucket = ExpiryNotes.bucket(savedAt: start + 0.5, expiresAt: start + 640.5)
    let end = Date(timeIntervalSinceReferenceDate: Double(bucket))
    #expect(end >= start + 640.5 && end < start + 648.5)
    try cache.save(1, for: "a")
    fixture.clock.set(start + 639)
    #expect(try fixture.store.sweep() == 0)
    #expect(try cache.lookup(for: "a").kind == "stale")
    fixture.clock.set(end - 0.001)
    #expect(try cache.lookup(for: "a").kind == "expired")
    #expect(try fixture.store.sweep() == 0)
    fixture.clock.set(end)
    #expect(try fixture.store.sweep() == 1)
    #expect(try cache.lookup(for: "a").kind == "missing")
  }

  @Test("A sweep of many slices counts overwritten keys once.", arguments: StoreKind.allCases)
  func slices(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    for round in 0..<3 {
      try fixture.store.write { batch in
        for key in 0..<700 { batch.save(key, for: "\(key)", in: cache) }
      }
      fixture.clock.advance(by: .seconds(round == 2 ? 200 : 7))
    }
    try cache.save(-1, for: "5")
    #expect(try fixture.store.sweep() == 699)
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try fixture.buckets(of: cache).mapValues(\.count) == ["5": 1])
    #expect(try cache.value(for: "5") == -1)
  }

  @Test("More keys than a sweep holds in memory are deleted by one sweep.")
  func manyKeys() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    let end = String(repeating: "k", count: 60_000)
    let count = CacheSweep.sortedKeyBytes / end.utf8.count + 5
    // Each key has two notes, which lie as far apart as they can.
    for round in 0..<2 {
      for number in 0..<count { try cache.save(round, for: "\(number)" + end) }
      fixture.clock.advance(by: .seconds(86_400))
    }
    try cache.save(1, for: "0")
    fixture.clock.advance(by: .seconds(6.5 * 86_400))

    #expect(try fixture.store.sweep() == count)
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try fixture.notes().count == 1)
    #expect(try fixture.disagreement(at: fixture.clock.now()) == nil)
  }

  @Test("A removed entry leaves no notes behind.")
  func removed() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    try cache.remove("a")
    fixture.clock.advance(by: .seconds(101))
    #expect(try fixture.store.sweep() == 0)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test("Caches that are not open are swept by their last lifetime.", arguments: StoreKind.allCases)
  func dormantCaches(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let short = try fixture.store.cache("short", of: Int.self, lifetime: .seconds(50))
    let long = try fixture.store.cache("long", of: Int.self, lifetime: .seconds(5000))
    for key in ["a", "b"] {
      try short.save(1, for: key)
      try long.save(1, for: key)
    }
    fixture.clock.advance(by: .seconds(60))
    try fixture.reopen()
    #expect(try fixture.store.sweep() == 2)
    #expect(try fixture.rows(in: .records).count == 2)
    // Once it is opened, it is swept by its new lifetime.
    let longer = try fixture.store.cache("long", of: Int.self, lifetime: .seconds(10_000))
    fixture.clock.advance(by: .seconds(6000))
    #expect(try fixture.store.sweep() == 0)
    #expect(try longer.value(for: "a") == 1)
    fixture.clock.advance(by: .seconds(6000))
    #expect(try fixture.store.sweep() == 2)
  }

  @Test("A cleared cache is swept under its new id.")
  func cleared() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    fixture.clock.advance(by: .seconds(200))
    #expect(try fixture.store.sweep() == 1)
    try fixture.store.write { batch in
      batch.removeAll(from: cache)
      batch.save(2, for: "b", in: cache)
    }
    fixture.clock.advance(by: .seconds(200))
    #expect(try fixture.store.sweep() == 1)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test("A closed store throws closed.")
  func closed() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.close()
    #expect { try fixture.store.sweep() } throws: { error in
      if case StoreError.closed = error { true } else { false }
    }
  }

  @Test("A sweep with nothing due reads nothing.")
  func nothingDue() throws {
    let clock = ManualClock()
    let engine = InterruptedEngine(InMemoryEngine())
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .memory)
    let cache = try store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    #expect(try store.sweep() == 0)
    let cursors = engine.cursorCount
    for second in 0..<99 {
      clock.advance(by: .seconds(1))
      try cache.save(second, for: "b")
      #expect(try store.sweep() == 0)
    }
    #expect(engine.cursorCount == cursors)
    clock.advance(by: .seconds(1))
    #expect(try store.sweep() == 1)
    // Over the notes, and over the records.
    #expect(engine.cursorCount == cursors + 2)
  }

  @Test("A key overwritten all the time for nine days leaves one note for each bucket.")
  func overwritten() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .days(7))
    var most = 0
    let interval = isProof ? 1 : 15
    for second in stride(from: 0, to: 9 * 86_400, by: interval) {
      try cache.save(second, for: "a")
      fixture.clock.advance(by: .seconds(interval))
      if second.isMultiple(of: 9450) {
        #expect(try fixture.store.sweep() == 0)
        most = max(most, try fixture.rows(in: .notes).count)
      }
    }
    // Buckets of 8,192 seconds.
    #expect(most <= 75)
    #expect(try fixture.notes().count <= 75)
    #expect(try cache.value(for: "a") == 9 * 86_400 - interval)
  }

  @Test("Each lifetime that a key is saved with has notes of its own, until they are due.")
  func notesOfManyLifetimes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    for number in 0..<2001 {
      try cache.save(number, for: "a", lifetime: .hours(Double(1 + number)))
    }
    let before = try fixture.notes().count
    #expect((200...2001).contains(before), "\(before)")
    try cache.save(-1, for: "a", lifetime: .days(100))
    fixture.clock.advance(by: .seconds(86 * 86_400))
    #expect(try fixture.store.sweep() == 0)
    #expect(try fixture.notes().count == 1)
    #expect(try cache.value(for: "a") == -1)
  }
}

// MARK: - Compaction

extension SweepTests {
  /// Sweeps `count` keys, every `stride`th of which has expired; returns the compacted ranges.
  private func compacted(
    _ count: Int, every stride: Int, bytes: Int = 10
  ) throws -> (ranges: [EngineRange], prefixes: [[UInt8]]) {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache(
      "cache", of: [UInt8].self, keyedBy: Int.self, lifetime: .seconds(100), coder: .bytes)
    var random = SplitMix64(seed: 1)
    for part in 0..<stride {
      try store.write { batch in
        for key in Swift.stride(from: part, to: count, by: stride) {
          // Random, because the files are compressed.
          let value = part == 0 ? [] : random.bytes(bytes)
          batch.save(value, for: key, in: cache)
        }
      }
      if part == 0 { fixture.clock.advance(by: .seconds(99)) }
    }
    try fixture.engine.compact(EngineRange())
    fixture.clock.advance(by: .seconds(10))
    #expect(try store.sweep() == (count + stride - 1) / stride)
    let id = cache.core.id
    return (
      engine.compacted,
      [KeySpace.records.prefix(ofCache: id)]
    )
  }

  @Test("Many deletions are compacted, and few are not.")
  func compaction() throws {
    let many = try compacted(2000, every: 1)
    #expect(many.ranges.map { Array($0.lower.prefix(2)) } == many.prefixes)
    #expect(many.ranges.allSatisfy { $0.upper?.starts(with: $0.lower.prefix(2)) == true })
    #expect(try compacted(900, every: 1).ranges.isEmpty)
  }

  @Test("Ranges in which few bytes were deleted are not compacted.")
  func sparse() throws {
    let dense = try compacted(4000, every: 2)
    #expect(dense.ranges.count == 1)
    let sparse = try compacted(4000, every: 2, bytes: 1200)
    #expect(sparse.ranges.isEmpty)
  }
}

// MARK: - Changed lifetimes, and entries that stay

extension SweepTests {
  @Test("A longer lifetime keeps entries until it ends.", arguments: StoreKind.allCases)
  func longerLifetime(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(6400))
    try cache.save(1, for: "a")
    try fixture.reopen()
    let longer = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(10_000))
    fixture.clock.advance(by: .seconds(7000))
    #expect(try fixture.store.sweep() == 0)
    #expect(try longer.value(for: "a") == 1)
    #expect(try fixture.disagreement(at: fixture.clock.now()) == nil)
    fixture.clock.advance(by: .seconds(3500))
    #expect(try fixture.store.sweep() == 1)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test("A shorter lifetime hides entries at once; a sweep deletes them when their notes are due.")
  func shorterLifetime() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(6400))
    try cache.save(1, for: "a")
    try fixture.reopen()
    let shorter = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(10))
    fixture.clock.advance(by: .seconds(20))
    #expect(try shorter.lookup(for: "a").kind == "expired")
    #expect(try fixture.store.sweep() == 0)
    fixture.clock.advance(by: .seconds(6400))
    #expect(try fixture.store.sweep() == 1)
  }

  @Test("A cache without a limit keeps its entries, and their notes for a later limit.")
  func unlimited() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    fixture.clock.advance(by: .seconds(1000))
    try fixture.reopen()
    let endless = try fixture.store.cache("cache", of: Int.self, lifetime: .unlimited)
    #expect(try fixture.store.sweep() == 0)
    #expect(try endless.value(for: "a") == 1)
    try fixture.reopen()
    _ = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    #expect(try fixture.store.sweep() == 1)
  }

  @Test("A damaged record stays, and its note is deleted.", arguments: StoreKind.allCases)
  func damaged(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    try cache.save(1, for: "b")
    let key = try fixture.recordKey("a", in: cache)
    var bytes = try #require(try fixture.engine.get(key.span.bytes))
    bytes[bytes.count - 1] ^= 1
    try fixture.put(bytes, under: key)
    fixture.clock.advance(by: .seconds(200))
    #expect(try fixture.store.sweep() == 1)
    #expect(try fixture.onlyRecord() == (key, bytes))
    #expect(try fixture.rows(in: .notes).isEmpty)
    #expect(try cache.validate().unreadable == 1)
  }

  @Test("A newer program's entries stay with their notes until that program sweeps them.")
  func newer() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    func open(_ version: Int) throws -> Cache<String, Int> {
      try fixture.store.cache(
        "cache", of: Int.self, lifetime: .seconds(100), schema: Schema(version: version))
    }
    try open(2).save(1, for: "a")
    fixture.clock.advance(by: .seconds(200))
    try fixture.reopen()
    let old = try open(1)
    #expect(try fixture.store.sweep() == 0)
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try fixture.buckets(of: old)["a"]?.count == 1)
    try fixture.reopen()
    _ = try open(2)
    // The note is due again after an hour.
    #expect(try fixture.store.sweep() == 0)
    fixture.clock.advance(by: .seconds(3600))
    #expect(try fixture.store.sweep() == 1)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test("A damaged registration is reported after the other caches were swept.")
  func damagedRegistration() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    for name in ["a", "b"] {
      try fixture.store.cache(name, of: Int.self, lifetime: .seconds(100)).save(1, for: "k")
    }
    try fixture.put([1, 2, 3, 4, 5], under: Metadata.cache("a"))
    fixture.clock.advance(by: .seconds(200))
    try fixture.reopen()
    #expect { try fixture.store.sweep() } throws: { error in
      if case StoreError.corrupt("a", "", nil) = error { true } else { false }
    }
    #expect(try fixture.rows(in: .records).count == 1)
  }
}
