import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// The statistics of an open store count each operation once, for its cache.
@Suite struct StatisticsTests {
  private typealias Reads = CacheStatistics.Reads

  /// The ways to read a key.
  enum Read: CaseIterable {
    case value, entry, lookup

    func callAsFunction<Value>(_ cache: Cache<String, Value>, _ key: String) throws {
      switch self {
      case .value: _ = try cache.value(for: key)
      case .entry: _ = try cache.entry(for: key)
      case .lookup: _ = try cache.lookup(for: key)
      }
    }
  }

  private func counts(of store: Store, _ name: String = "cache") throws -> CacheStatistics {
    try #require(store.statistics.caches[name])
  }

  // MARK: - Reads

  @Test("Reads are counted by their result.", arguments: StoreKind.allCases, Read.allCases)
  func reads(kind: StoreKind, read: Read) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "cache", of: Int.self, lifetime: .fresh(for: .seconds(10), thenStaleFor: .seconds(10)))
    let other = try fixture.store.cache("other", of: Int.self)
    try cache.save(1, for: "a")

    for _ in 0..<1 { try read(cache, "none") }
    for _ in 0..<2 { try read(cache, "a") }
    fixture.clock.advance(by: .seconds(10))
    for _ in 0..<3 { try read(cache, "a") }
    fixture.clock.advance(by: .seconds(10))
    for _ in 0..<4 { try read(cache, "a") }
    try read(other, "none")

    #expect(
      try counts(of: fixture.store).reads
        == Reads(
          fresh: 2, memory: kind.isOnDisk ? 1 : 0, stale: 3, expired: 4, missing: 1, failed: 0))
    #expect(
      try counts(of: fixture.store, "other").reads
        == Reads(fresh: 0, stale: 0, expired: 0, missing: 1, failed: 0))
  }

  @Test("A read of an entry older than the maximum age counts as expired.")
  func maximumAge() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    try cache.save(1, for: "a")
    fixture.clock.advance(by: .seconds(5))
    _ = try cache.lookup(for: "a", maxAge: .seconds(5))
    #expect(try counts(of: fixture.store).reads.expired == 1)
  }

  @Test("Reads that throw count as failed.", arguments: StoreKind.allCases, Read.allCases)
  func failedReads(kind: StoreKind, read: Read) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("cache", of: [Int].self, schema: Schema(version: 1))
    try numbers.save([1], for: "undecodable")
    try numbers.save([1], for: "damaged")
    try fixture.put([0], under: numbers.core.recordKey(of: "damaged", id: numbers.core.id).bytes)
    try fixture.reopen()
    let notes = try fixture.store.cache("cache", of: Note.self)

    for key in ["undecodable", "damaged", String(repeating: "k", count: maximumKeyBytes + 1)] {
      #expect(throws: StoreError.self) { try read(notes, key) }
    }
    #expect(
      try counts(of: fixture.store).reads
        == Reads(fresh: 0, stale: 0, expired: 0, missing: 0, failed: 3))
  }

  // MARK: - Changes

  @Test("Saves, removals and clears are counted for their cache.", arguments: StoreKind.allCases)
  func changes(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let caches = try ["a", "b", "c"].map { try store.cache($0, of: Int.self) }
    try caches[0].save(1, for: "x")
    try caches[0].remove("x")
    try caches[0].remove("none")
    try caches[0].removeAll()
    try store.write { batch in
      for number in 0..<6 {
        batch.save(number, for: "\(number)", in: caches[number % 3])
        batch.save(number, for: "y", in: caches[2])
      }
      batch.remove("0", from: caches[0])
      for _ in 0..<2 { batch.remove("none", from: caches[1]) }
      batch.removeAll(from: caches[1])
    }

    let changes = try ["a", "b", "c"].map { name in
      let cache = try counts(of: store, name)
      return [cache.saves, cache.removals, cache.clears]
    }
    #expect(changes == [[3, 3, 1], [2, 2, 1], [8, 0, 0]])
  }

  @Test("Failed writes are not counted.")
  func failedWrites() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let (engine, store, cache) = try interrupted(fixture)
    let changes: [() throws -> Void] = [
      { try cache.save(1, for: "a") }, { try cache.remove("a") }, { try cache.removeAll() },
    ]
    for change in changes {
      engine.beforeNextWrite = { throw StoreError.diskFull }
      #expect(throws: StoreError.self) { try change() }
    }
    // Nor are batches that were abandoned before the write.
    #expect(throws: CancellationError.self) {
      try store.write { batch in
        batch.save(1, for: "a", in: cache)
        throw CancellationError()
      }
    }
    #expect(try counts(of: store) == CacheStatistics())
    for change in changes { try change() }
    let counts = try counts(of: store)
    for count in [counts.saves, counts.removals, counts.clears] { #expect(count == 1) }
  }

  @Test("Touches, migrations and scans count neither as reads nor as saves.")
  func otherCalls() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.cache("cache", of: Int.self).save(1, for: "a")
    try fixture.reopen()
    let cache = try fixture.store.cache("cache", of: Int.self, coder: .json)
    try cache.touch("a")
    #expect(try fixture.store.migrate(cache).migrated == 1)
    let cursor = try cache.entries()
    while try cursor.next() != nil {}
    try cache.validate()
    #expect(try counts(of: fixture.store) == CacheStatistics())
  }

  // MARK: - Deletions

  /// The number and size of a store's records, with their keys.
  private func records(of fixture: Fixture) throws -> EntryTotal {
    let rows = try fixture.rows(in: .records)
    return EntryTotal(
      entries: rows.count, bytes: rows.reduce(0) { $0 + $1.key.count + $1.value.count })
  }

  @Test("Sweeps are counted, with what they delete.", arguments: StoreKind.allCases)
  func sweeps(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("cache", of: Data.self, lifetime: .seconds(100), coder: .bytes)
    #expect(store.statistics.sweeps == 0)
    #expect(store.statistics.mayHaveBacklog)
    for count in 0..<300 { try cache.save(Data(count: count), for: "key \(count)") }
    let all = try records(of: fixture)
    try store.sweep()
    #expect(!store.statistics.mayHaveBacklog)
    #expect(try counts(of: store).deletions == CacheStatistics.Deletions())

    fixture.clock.advance(by: .seconds(200))
    #expect(store.statistics.mayHaveBacklog)
    try store.sweep()
    #expect(!store.statistics.mayHaveBacklog)
    #expect(try counts(of: store).deletions.sweeps == all)
    #expect(try counts(of: store).deletions.validations == EntryTotal())
    #expect(store.statistics.sweeps == 2)
  }

  /// A store on an interrupted engine, with a cache.
  private func interrupted(
    _ fixture: Fixture
  ) throws -> (engine: InterruptedEngine, store: Store, cache: Cache<String, Int>) {
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: engine, options: options, origin: .memory)
    return (engine, store, try store.cache("cache", of: Int.self, lifetime: .seconds(100)))
  }

  @Test("Statistics can be read during a sweep, and then report a backlog.")
  func duringSweep() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let (engine, store, cache) = try interrupted(fixture)
    try store.sweep()
    try cache.save(1, for: "a")
    fixture.clock.advance(by: .seconds(200))
    let seen = Mutex<Statistics?>(nil)
    engine.beforeNextWrite = {
      onThreads(1) { _ in
        let statistics = store.statistics
        seen.withLock { $0 = statistics }
      }
    }
    try store.sweep()
    let statistics = try #require(seen.withLock { $0 })
    #expect(statistics.mayHaveBacklog)
    #expect(statistics.sweeps == 2)
    #expect(!store.statistics.mayHaveBacklog)
  }

  @Test("An entry saved during a sweep does not count as deleted.")
  func savedMeanwhile() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let (engine, store, cache) = try interrupted(fixture)
    for key in ["a", "b"] { try cache.save(1, for: key) }
    fixture.clock.advance(by: .seconds(200))
    engine.beforeNextWrite = { try cache.save(2, for: "a") }
    try store.sweep()
    #expect(try counts(of: store).deletions.sweeps.entries == 1)

    fixture.clock.advance(by: .seconds(200))
    for key in ["c", "d"] { try cache.save(1, for: key) }
    fixture.clock.advance(by: .seconds(200))
    engine.beforeNextWrite = { try cache.save(2, for: "c") }
    try cache.validate()
    #expect(try counts(of: store).deletions.validations.entries == 2)
    #expect(try counts(of: store).removals == 0)
  }

  @Test(
    "Deletions by validate are counted apart from those by sweeps.", arguments: StoreKind.allCases)
  func validations(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: [Int].self, lifetime: .seconds(100))
    for key in ["expired", "damaged"] { try cache.save([1, 2], for: key) }
    try fixture.put([0], under: cache.core.recordKey(of: "damaged", id: cache.core.id).bytes)
    let before = try records(of: fixture)
    fixture.clock.advance(by: .seconds(200))
    try cache.save([3], for: "kept")
    try cache.validate()
    #expect(try counts(of: fixture.store).deletions.validations == before)
    #expect(try counts(of: fixture.store).deletions.sweeps == EntryTotal())
  }

  @Test("Background sweeps are counted.")
  func backgroundSweeps() throws {
    let fire = Mutex<(@Sendable () -> Void)?>(nil)
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = .seconds(60)
    options.sweepTrigger = { _, sweep in
      fire.withLock { $0 = sweep }
      return {}
    }
    let store = try Store(engine: InMemoryEngine(), options: options, origin: .memory)
    let sweep = try #require(fire.withLock { $0 })
    sweep()
    #expect(store.statistics.sweeps == 0)
    clock.advance(by: .seconds(600))
    sweep()
    #expect(store.statistics.sweeps == 1)
    try store.close()
  }

  // MARK: - Listed caches

  @Test("A swept cache that is not open is listed, and keeps its counts when it is opened.")
  func dormantCache() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    for name in ["swept", "fresh"] {
      try fixture.store.cache(name, of: Int.self, lifetime: .seconds(name == "swept" ? 10 : 1000))
        .save(1, for: "a")
    }
    fixture.clock.advance(by: .seconds(100))
    try fixture.reopen()
    let store = fixture.store
    #expect(store.statistics.caches == [:])
    #expect(store.statistics.mayHaveBacklog)
    try store.sweep()
    #expect(store.statistics.caches.keys.sorted() == ["swept"])
    #expect(!store.statistics.mayHaveBacklog)
    fixture.clock.advance(by: .seconds(1000))
    #expect(store.statistics.mayHaveBacklog)

    let cache = try store.cache("swept", of: Int.self, lifetime: .seconds(10))
    try cache.save(1, for: "b")
    #expect(try counts(of: store, "swept").saves == 1)
    #expect(try counts(of: store, "swept").deletions.sweeps.entries == 1)
  }

  @Test("An open cache is listed at once, and one that failed to open is not.")
  func listed() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.put([1, 2, 3, 4, 5], under: Metadata.cache("damaged"))
    #expect(throwsCorrupt("damaged", "") { try fixture.store.cache("damaged", of: Int.self) })
    _ = try fixture.store.cache("open", of: Int.self)
    #expect(fixture.store.statistics.caches == ["open": CacheStatistics()])
  }

  @Test("Opening a cache again keeps its counts.")
  func reopened() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    for _ in 0..<3 { try fixture.store.cache("cache", of: Int.self).save(1, for: "a") }
    #expect(try counts(of: fixture.store).saves == 3)
  }

  // MARK: - Closing, and threads

  @Test(
    "A closed store keeps its statistics, and the next one starts from zero.",
    arguments: StoreKind.allCases)
  func closed(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("cache", of: Int.self)
    try cache.save(1, for: "a")
    try store.sweep()
    let before = store.statistics
    try fixture.reopen()
    #expect(try fixture.store.cache("cache", of: Int.self).value(for: "a") == 1)
    #expect(store.statistics == before)
    #expect(try counts(of: fixture.store).saves == 0)

    try store.close()
    #expect(throwsClosed { try cache.save(2, for: "a") })
    #expect(try counts(of: store).saves == 1)
  }

  /// Only counts, so that the threads contend for the counter.
  @Test("No count of eight threads is lost.")
  func noLostCounts() {
    let counts = CacheCounts(of: "cache", reportingTo: nil)
    onThreads(8) { _ in
      for _ in 0..<1_000_000 { counts.saves.add() }
    }
    #expect(counts.saves.value == 8_000_000)
  }

  @Test("The reads and saves of eight threads add up.")
  func eightThreads() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let store = fixture.store
    let caches = try (0..<2).map { try store.cache("\($0)", of: Int.self, keyedBy: Int.self) }
    for cache in caches { try cache.save(1, for: 0) }
    let rounds = 2000
    let failures = Mutex<[String]>([])
    onThreads(8) { thread in
      do {
        let cache = caches[thread % 2]
        for round in 0..<rounds {
          if try cache.value(for: 0) == nil { failures.withLock { $0.append("missing") } }
          _ = try cache.lookup(for: -1)
          if round % 20 == 0 {
            try cache.save(round, for: thread + 1)
            _ = store.statistics
          }
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    for name in ["0", "1"] {
      let counts = try counts(of: store, name)
      #expect(
        counts.reads
          == Reads(fresh: 4 * rounds, stale: 0, expired: 0, missing: 4 * rounds, failed: 0))
      #expect(counts.saves == 1 + 4 * rounds / 20)
    }
  }
}
