import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// The queue of a budget finds every entry, and does not grow with what is gone.
@Suite struct EvictionQueueTests {
  private static let budget = 100_000
  private static let entryBytes = (2 + 8) + (36 + 10)

  private func open(_ fixture: Fixture) throws -> Cache<Int, Data> {
    try fixture.store.cache(
      "cache", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: Self.budget)
  }

  private func queue(_ fixture: Fixture) -> EvictionQueue {
    fixture.store.context.budgets.accounting.queue(of: 0)
  }

  @Test(
    "Entries that were saved before the store was opened are evicted, and queued in slices.",
    arguments: StoreKind.allCases)
  func scan(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var cache = try open(fixture)
    let count = Self.budget / Self.entryBytes
    try fixture.store.write { batch in
      for key in 0..<count { batch.save(bytes(10), for: key, in: cache) }
    }
    try fixture.reopen()
    cache = try open(fixture)
    #expect(!queue(fixture).isInUse)
    try cache.save(bytes(10), for: -1)
    #expect(queue(fixture).isInUse)
    // The first eviction has not visited them all.
    #expect(queue(fixture).count < count)
    try cache.save(bytes(Self.budget - (2 + 8) - 36), for: -2)
    #expect(try cache.count() == 1)
    #expect(queue(fixture).count == 1)
  }

  @Test("The queue does not grow with entries that are gone.", arguments: StoreKind.allCases)
  func gone(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try open(fixture)
    let most = 2 * Self.budget / Self.entryBytes + 1
    for key in 0..<Self.budget / Self.entryBytes + 1 { try cache.save(bytes(10), for: key) }
    #expect(queue(fixture).isInUse)
    for round in 0..<3 {
      for _ in 0..<2000 {
        try cache.remove(round)
        try cache.save(bytes(10), for: round)
        #expect(queue(fixture).count <= most)
      }
      // Evicts, and so uses the queue again.
      try cache.save(bytes(1000 + round), for: -1)
      if round == 1 { try cache.removeAll() }
    }
    try cache.save(bytes(Self.budget - (2 + 8) - 36), for: -2)
    #expect(try cache.count() == 1)
  }

  @Test("A save that is refused adds nothing to the queue.", arguments: StoreKind.allCases)
  func refused(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try open(fixture)
    for key in 0..<3 { try cache.save(bytes(30_000), for: key) }
    try cache.save(bytes(30_000), for: 3)
    // Records of a later version of this library, which may not be evicted.
    for record in try fixture.rows(in: .records) {
      var batch = WriteBatch()
      batch.put(record.key.span.bytes, stamp: Record.stamp) {
        $0.append([9] + record.value.dropFirst())
      }
      try fixture.engine.write(&batch, synced: false)
    }
    for key in 10..<100 {
      #expect(throws: StoreError.self) { try cache.save(bytes(30_000), for: key) }
    }
    #expect(queue(fixture).count == 0)
    // Written anew, they can be evicted.
    for key in 1..<4 { try cache.save(bytes(30_000), for: key) }
    try cache.save(bytes(30_000), for: 5)
    #expect(try fixture.miscount(of: cache) == nil)
  }

  @Test(
    "A count that includes index rows, as earlier versions wrote it, is counted anew.",
    arguments: [nil, 50_000])
  func earlierCount(storeBudget: Int?) throws {
    let fixture = try Fixture(.disk, byteBudget: storeBudget)
    defer { fixture.end() }
    var cache = try fixture.store.cache("cache", of: Data.self, coder: .bytes, byteBudget: 1000)
    for number in 0..<3 { try cache.save(bytes(100), for: "k\(number)") }
    let key = Metadata.bytes(cache.core.id)
    var batch = WriteBatch()
    batch.putMetadata(3 * (4 + 136 + 14), under: key)
    try fixture.engine.write(&batch, synced: false)
    try fixture.reopen()
    cache = try fixture.store.cache("cache", of: Data.self, coder: .bytes, byteBudget: 1000)
    #expect(fixture.countedBytes(cache) == 3 * (4 + 136))
    #expect(try fixture.miscount(of: cache) == nil)
  }
}

/// Reads of entries are counted exactly, up to three.
@Suite struct RecentReadsTests {
  @Test("Counts are those of a dictionary.")
  func model() {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let reads = RecentReads(budget: 1 << 20)
    var model: [UInt32: Int] = [:]
    for step in 0..<20_000 {
      let key = Array("key \(Int.random(in: 0..<3000, using: &random))".utf8)
      let hash = RecentReads.hash(key.span.bytes)
      let old = model[hash, default: 0]
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<6:
        reads.add(key.span.bytes)
        model[hash] = min(old + 1, 3)
      case 6..<9:
        guard reads.decrement(hash) == old else { return fail(seed, step) }
        model[hash] = max(old - 1, 0)
      default:
        guard reads.take(hash) == old else { return fail(seed, step) }
        model[hash] = 0
      }
    }
    for (hash, count) in model { #expect(reads.take(hash) == count, "seed \(seed)") }
  }

  private func fail(_ seed: UInt64, _ step: Int) { Issue.record("seed \(seed), step \(step)") }

  @Test("Beyond the limit all counts become one less, so that recent reads are remembered.")
  func limit() {
    // Room for 1,024 entries.
    let reads = RecentReads(budget: 0)
    let often = Array("often".utf8)
    for number in 0..<100_000 {
      reads.add(Array("key \(number)".utf8).span.bytes)
      if number.isMultiple(of: 16) { reads.add(often.span.bytes) }
    }
    #expect(reads.take(RecentReads.hash(often.span.bytes)) >= 1)
    let left = (0..<100_000).count {
      reads.take(RecentReads.hash(Array("key \($0)".utf8).span.bytes)) > 0
    }
    #expect(left > 0 && left <= 1024)
  }
}
