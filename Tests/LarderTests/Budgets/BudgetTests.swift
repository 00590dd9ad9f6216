import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Byte budgets count the right bytes, evict the right entries, and refuse what cannot fit.
@Suite struct BudgetTests {
  /// The size of an entry of `bytes(100)` under a key of two bytes: key and record.
  private static let entryBytes = (2 + 2) + (36 + 100)

  private func open(
    _ fixture: Fixture, _ name: String = "cache", lifetime: Lifetime = .days(7),
    byteBudget: Int? = nil
  ) throws -> Cache<String, Data> {
    try fixture.store.cache(
      name, of: Data.self, lifetime: lifetime, coder: .bytes, byteBudget: byteBudget)
  }

  /// Saves `k0`, `k1` and so on, three hours apart.
  private func fill(
    _ cache: Cache<String, Data>, _ numbers: Range<Int>, _ fixture: Fixture
  ) throws {
    for number in numbers {
      try cache.save(bytes(100), for: "k\(number)")
      fixture.clock.advance(by: .seconds(3 * 3600))
    }
  }

  private func keys(_ cache: Cache<String, Data>) throws -> [String] {
    var keys: [String] = []
    let cursor = try cache.keys()
    while let key = try cursor.next() { keys.append(key) }
    return keys
  }

  @Test(
    "Entries that nobody reads are evicted: the first of the older ones, then new ones.",
    arguments: StoreKind.allCases, [Lifetime.days(7), .unlimited])
  func unread(kind: StoreKind, lifetime: Lifetime) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try open(fixture, lifetime: lifetime, byteBudget: 5 * Self.entryBytes)
    try fill(cache, 0..<5, fixture)
    #expect(fixture.countedBytes(cache) == 5 * Self.entryBytes)
    #expect(try keys(cache) == ["k0", "k1", "k2", "k3", "k4"])
    try fill(cache, 5..<7, fixture)
    #expect(try keys(cache) == ["k1", "k2", "k3", "k4", "k6"])
    let statistics = try #require(fixture.store.statistics.caches["cache"])
    #expect(statistics.deletions.cacheBudget == EntryTotal(entries: 2, bytes: 2 * (4 + 136)))
    #expect(statistics.deletions.storeBudget == EntryTotal())
    #expect(statistics.heldBytes == 5 * Self.entryBytes)
    #expect(try fixture.miscount(of: cache) == nil)
    // Saved again soon after its eviction, an entry stays.
    try fill(cache, 5..<6, fixture)
    #expect(try keys(cache) == ["k1", "k2", "k3", "k4", "k5"])
    try fill(cache, 7..<9, fixture)
    #expect(try keys(cache) == ["k2", "k3", "k4", "k5", "k8"])
    #expect(try fixture.miscount(of: cache) == nil)
  }

  @Test("An entry that is read stays.", arguments: StoreKind.allCases)
  func read(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try open(fixture, byteBudget: 4 * Self.entryBytes)
    try fill(cache, 0..<4, fixture)
    #expect(try cache.value(for: "k0") != nil)
    #expect(try cache.lookup(for: "k2").kind == "fresh")
    // An older entry stays for one more round if it was read once.
    try fill(cache, 4..<5, fixture)
    #expect(try keys(cache) == ["k0", "k2", "k3", "k4"])
    // A new entry stays if it was read twice.
    #expect(try cache.value(for: "k4") != nil)
    try fill(cache, 5..<6, fixture)
    #expect(try keys(cache) == ["k0", "k2", "k3", "k5"])
    for _ in 0..<2 { #expect(try cache.value(for: "k5") != nil) }
    try fill(cache, 6..<8, fixture)
    #expect(try keys(cache) == ["k0", "k2", "k5", "k7"])
  }

  @Test(
    "Each of many requests is a hit exactly if S3-FIFO's model has one.",
    arguments: [1, 2, 7, 10, 19, 20, 64, 128])
  func policy(capacity: Int) throws {
    let seed = testSeed()
    var requests = EvictionRequests(seed: seed, capacity: capacity)
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let entryBytes = (2 + 8) + 36
    let cache = try fixture.store.cache(
      "cache", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: capacity * entryBytes)
    var model = EvictionModel(capacity: capacity, weight: entryBytes, isBudget: true)
    var hits = 0
    let count = isProof ? 125_000 : max(4000, 100 * capacity)
    for number in 0..<count {
      let key = requests.next()
      let isHit = try cache.value(for: key) != nil
      if isHit { hits += 1 } else { try cache.save(Data(), for: key) }
      guard isHit == model.use(key) else {
        Issue.record("seed \(seed): request \(number), key \(key), is a hit: \(isHit)")
        return
      }
    }
    #expect(hits > count / 100 && hits < count * 99 / 100, "seed \(seed)")
  }

  @Test(
    "An entry that is read often stays, whether it is read from memory or from disk.",
    arguments: [MemoryTier.shared, .none])
  func hot(tier: MemoryTier) throws {
    let fixture = try Fixture(.disk) { $0.memoryBytes = 1 << 20 }
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "cache", of: Data.self, lifetime: .unlimited, coder: .bytes,
      byteBudget: 20 * (Self.entryBytes + 1), memory: tier)
    try fill(cache, 0..<22, fixture)
    for number in 22..<100 {
      // A new entry, which leaves the budget soon if it does not look read.
      for _ in 0..<3 { #expect(try cache.value(for: "k21") != nil) }
      try fill(cache, number..<number + 1, fixture)
    }
    let reads = try #require(fixture.store.statistics.caches["cache"]).reads
    #expect((reads.memory > 0) == (tier != .none))
    #expect(try keys(cache).contains("k22") == false)
  }

  @Test(
    "A touch adds 8 bytes to an entry; if they do not fit, it is refused and the entry stays.",
    arguments: StoreKind.allCases)
  func touched(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let budget = 4 * Self.entryBytes
    let cache = try open(fixture, byteBudget: budget)
    let largest = bytes(budget - (Self.entryBytes - 100))
    try cache.save(largest, for: "k0")
    #expect {
      try cache.touch("k0")
    } throws: { error in
      guard case StoreError.budgetExceeded(budget + 8, budget) = error else { return false }
      return true
    }
    #expect(try cache.value(for: "k0") == largest)
    try cache.save(largest.dropLast(8), for: "k0")
    // The second one adds nothing.
    for _ in 0..<2 { #expect(try cache.touch("k0")) }
    #expect(fixture.countedBytes(cache) == budget)
  }

  @Test(
    "A save larger than the budget is refused, and nothing is evicted.",
    arguments: StoreKind.allCases)
  func tooLarge(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let budget = 4 * Self.entryBytes
    let cache = try open(fixture, byteBudget: budget)
    try fill(cache, 0..<4, fixture)
    let largest = budget - (Self.entryBytes - 100)
    #expect {
      try cache.save(bytes(largest + 1), for: "k9")
    } throws: { error in
      guard case StoreError.budgetExceeded(budget + 1, budget) = error else { return false }
      return true
    }
    let tooLarge = bytes(largest + 1)
    #expect(throws: StoreError.self) { try cache.save(tooLarge, for: "k9", if: .absent) }
    #expect(throws: StoreError.self) { try cache.update("k0") { $0 = tooLarge } }
    #expect(throws: StoreError.self) {
      try fixture.store.write { batch in
        for number in 0..<5 { batch.save(bytes(100), for: "n\(number)", in: cache) }
      }
    }
    #expect(try keys(cache) == ["k0", "k1", "k2", "k3"])
    try cache.save(bytes(largest), for: "k9")
    #expect(try keys(cache) == ["k9"])
    #expect(fixture.countedBytes(cache) == budget)
    #expect(try fixture.miscount(of: cache) == nil)
  }

  @Test("A store's budget covers all its caches.", arguments: StoreKind.allCases)
  func wholeStore(kind: StoreKind) throws {
    let fixture = try Fixture(kind, byteBudget: 6 * Self.entryBytes)
    defer { fixture.end() }
    let week = try open(fixture, "w")
    let endless = try open(fixture, "e", lifetime: .unlimited)
    let small = try open(fixture, "s", byteBudget: 2 * Self.entryBytes)
    for number in 0..<2 {
      for cache in [week, endless, small] { try cache.save(bytes(100), for: "k\(number)") }
      fixture.clock.advance(by: .seconds(3 * 3600))
    }
    try small.save(bytes(100), for: "k2")
    #expect(try keys(small) == ["k1", "k2"])
    #expect(try keys(week) == ["k0", "k1"])
    // A save in one cache evicts an entry of another.
    for key in ["k0", "k1"] { #expect(try week.value(for: key) != nil) }
    try week.save(bytes(100), for: "k2")
    #expect(try keys(week) == ["k0", "k1", "k2"])
    try week.save(bytes(100), for: "k3")
    #expect(try keys(week) == ["k0", "k1", "k3"])
    #expect(try keys(endless) == ["k1"])
    #expect(try keys(small) == ["k1", "k2"])
    for cache in [week, endless, small] { #expect(try fixture.miscount(of: cache) == nil) }
    let statistics = fixture.store.statistics.caches
    #expect(statistics["w"]?.deletions.storeBudget.entries == 1)
    #expect(statistics["e"]?.deletions.storeBudget.entries == 1)
    #expect(statistics["s"]?.deletions.cacheBudget.entries == 1)
    #expect(statistics["s"]?.deletions.storeBudget.entries == 0)
  }

  @Test(
    "An expired entry is evicted although it was read.",
    arguments: StoreKind.allCases
  )
  func expired(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try open(fixture, lifetime: .seconds(64), byteBudget: 3 * Self.entryBytes)
    for number in 0..<3 {
      try cache.save(bytes(100), for: "k\(number)")
      #expect(try cache.value(for: "k\(number)") != nil)
      fixture.clock.advance(by: .seconds(10))
    }
    fixture.clock.advance(by: .seconds(34))
    try cache.save(bytes(100), for: "k3")
    #expect(try keys(cache) == ["k1", "k2", "k3"])
  }

  @Test(
    "Counts are right after every kind of write and after reopening.", arguments: StoreKind.allCases
  )
  func counts(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var cache = try open(fixture, lifetime: .seconds(640), byteBudget: 1 << 20)
    func check(_ what: Comment) throws {
      #expect(try fixture.miscount(of: cache) == nil, what)
    }
    try fixture.store.write { batch in
      for number in 0..<20 { batch.save(bytes(number * 10), for: "k\(number)", in: cache) }
      batch.save(bytes(3), for: "k3", in: cache)
      batch.remove("k4", from: cache)
    }
    try check("a batch")
    #expect(try keys(cache).count == 19)
    fixture.clock.advance(by: .seconds(100))
    try cache.save(bytes(500), for: "k5")
    try check("longer")
    try cache.save(bytes(1), for: "k5")
    try check("shorter")
    #expect(try cache.touch("k6"))
    try check("touch")
    #expect(try cache.remove("k7"))
    #expect(try !cache.remove("k7"))
    try check("remove")
    fixture.clock.advance(by: .seconds(560))
    #expect(try fixture.store.sweep() == 16)
    try check("sweep")
    try fixture.reopen()
    cache = try open(fixture, lifetime: .seconds(640), byteBudget: 1 << 20)
    try check("opened again")
    fixture.clock.advance(by: .seconds(1000))
    #expect(try cache.validate().expired == 2)
    try check("validate")
    try fixture.store.write { batch in
      batch.save(bytes(9), for: "before", in: cache)
      batch.removeAll(from: cache)
      batch.save(bytes(9), for: "after", in: cache)
    }
    try check("clear")
    #expect(try keys(cache) == ["after"])
    try fixture.reopen()
    cache = try open(fixture, lifetime: .seconds(640), byteBudget: 1 << 20)
    try check("cleared and opened again")
  }

  @Test("A cache that gets a budget counts its older entries.", arguments: StoreKind.allCases)
  func newBudget(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    for lifetime in [Lifetime.unlimited, .days(7), .unlimited] {
      // First without a budget and then with one: earlier entries count, and can be evicted.
      try fixture.reopen()
      var cache = try open(fixture, lifetime: lifetime)
      try cache.removeAll()
      try fill(cache, 0..<4, fixture)
      try cache.save(bytes(90), for: "k3")
      #expect(fixture.countedBytes(cache) == nil)
      #expect(try fixture.engine.get(Metadata.bytes(cache.core.id).span.bytes) == nil)
      try fixture.reopen()
      cache = try open(fixture, lifetime: lifetime, byteBudget: 4 * Self.entryBytes)
      #expect(try fixture.miscount(of: cache) == nil)
      try fill(cache, 5..<8, fixture)
      #expect(try keys(cache) == ["k1", "k2", "k3", "k7"])
      #expect(try fixture.miscount(of: cache) == nil)
    }
  }

  @Test("A lowered budget applies from the next save.", arguments: StoreKind.allCases)
  func lowered(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var cache = try open(fixture, byteBudget: 9 * Self.entryBytes)
    try fill(cache, 0..<9, fixture)
    try fixture.reopen()
    cache = try open(fixture, byteBudget: 3 * Self.entryBytes)
    #expect(try keys(cache).count == 9)
    try fill(cache, 9..<10, fixture)
    #expect(try keys(cache) == ["k7", "k8", "k9"])
  }

  @Test("Caches that are not open count towards the store's budget.", arguments: StoreKind.allCases)
  func dormantCaches(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fill(try open(fixture, "old", lifetime: .unlimited), 0..<4, fixture)
    fixture.byteBudget = 4 * Self.entryBytes
    try fixture.reopen()
    let cache = try open(fixture, "new")
    try fill(cache, 0..<1, fixture)
    for _ in 0..<2 { #expect(try cache.value(for: "k0") != nil) }
    try fill(cache, 1..<2, fixture)
    #expect(try keys(cache) == ["k0", "k1"])
    let old = try open(fixture, "old", lifetime: .unlimited)
    #expect(try keys(old) == ["k2", "k3"])
    #expect(try fixture.miscount(of: old) == nil)
    // Entries swept in a counted cache that is not open are subtracted, too.
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(8 * 86_400))
    #expect(try fixture.store.sweep() == 2)
    let swept = try open(fixture, "new")
    #expect(try fixture.miscount(of: swept) == nil)
    #expect(fixture.countedBytes(swept) == 0)
  }

  @Test("A budget is at least 1, and the same for all who open the cache.")
  func least() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    #expect(throws: StoreError.self) { try self.open(fixture, byteBudget: 0) }
    fixture.byteBudget = 0
    #expect(throws: StoreError.self) { try fixture.reopen() }
    fixture.byteBudget = nil
    let cache = try open(fixture, byteBudget: 1000)
    #expect(throws: StoreError.self) { try self.open(fixture, byteBudget: 1001) }
    #expect(try open(fixture, byteBudget: 1000).core === cache.core)
  }

  @Test("A migration to a larger form evicts what no longer fits.", arguments: StoreKind.allCases)
  func migration(kind: StoreKind) throws {
    // Numbers in JSON compress well.
    let fixture = try Fixture(kind) { $0.compression = false }
    defer { fixture.end() }
    func open(_ coder: Coder<[Double]>) throws -> Cache<String, [Double]> {
      try fixture.store.cache("cache", of: [Double].self, coder: coder, byteBudget: 3000)
    }
    let small = try open(.binary)
    let count = 15
    for number in 0..<count {
      try small.save((1...10).map { 1 / Double(number + $0 + 2) }, for: "\(number)")
    }
    try fixture.reopen()
    let large = try open(.json)

    let report = try fixture.store.migrate(large)

    let left = try (0..<count).filter { try large.value(for: "\($0)") != nil }
    #expect((5..<count).contains(left.count))
    #expect(report.migrated >= left.count && report.unreadable == 0)
    #expect(try fixture.miscount(of: large) == nil)
    #expect(try #require(fixture.countedBytes(large)) <= 3000)
  }
}
