import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Budgets hold in caches that are damaged.
@Suite struct BudgetDamageTests {
  private func open(_ path: String, byteBudget: Int? = 1 << 20) throws -> (
    engine: LevelDBEngine, store: Store, cache: Cache<String, Data>
  ) {
    let engine = try LevelDBEngine(at: path)
    var options = Store.Options()
    options.clock = ManualClock()
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache("cache", of: Data.self, coder: .bytes, byteBudget: byteBudget)
    return (engine, store, cache)
  }

  @Test("A count that damage made inexact is too high, never too low, and is not stored.")
  func inexactCount() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path
    var (engine, store, cache) = try open(path)
    var random = SplitMix64(seed: 5)
    let names = (0..<900).map { "k\(10_000 + $0)" }
    try store.write { batch in
      for name in names { batch.save(Data(random.bytes(200)), for: name, in: cache) }
    }
    try store.context.writeNotes()
    try engine.compact(EngineRange())
    try store.close()
    let table = try #require(try Damage.files(in: path, endingIn: ".ldb").first)
    try Damage.flipByte(at: 50_000, of: table)

    (engine, store, cache) = try open(path)
    let account = { try #require(store.context.budgets.accounting.count(cache.core.id)) }
    #expect(try account().isExact)
    let before = try account().bytes
    // Some of the old records cannot be read; each new one is shorter than the old one.
    for name in names { try cache.save(bytes(100), for: name) }
    #expect(try !account().isExact)
    #expect(try account().bytes > before - names.count * 100)
    #expect(try engine.get(Metadata.bytes(cache.core.id).span.bytes) == nil)
    for name in names { #expect(try cache.value(for: name) == bytes(100)) }
    try store.close()

    // Cleared, it is a cache without damage.
    (engine, store, cache) = try open(path)
    try cache.removeAll()
    try cache.save(bytes(100), for: "new")
    #expect(try account().isExact)
    #expect(try account().bytes == 2 + 3 + 136)
    try store.close()
  }

  @Test("A damaged entry is evicted like any other.", arguments: StoreKind.allCases)
  func damagedEntry(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Data.self, coder: .bytes, byteBudget: 1000)
    for number in 0..<5 {
      try cache.save(bytes(120), for: "k\(number)")
      fixture.clock.advance(by: .seconds(3 * 3600))
    }
    let record = try #require(try fixture.rows(in: .records).first)
    var value = record.value
    value[40] ^= 1
    try fixture.put(value, under: record.key)
    for number in 5..<7 { try cache.save(bytes(120), for: "k\(number)") }
    #expect(try fixture.rows(in: .records).allSatisfy { $0.key != record.key })
    #expect(try cache.value(for: "k6") == bytes(120))
    #expect(try fixture.miscount(of: cache) == nil)
  }

  @Test(
    "A save is refused if the entries in its way may not be evicted.", arguments: StoreKind.allCases
  )
  func unevictable(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Data.self, coder: .bytes, byteBudget: 1000)
    for number in 0..<5 { try cache.save(bytes(120), for: "k\(number)") }
    // Records of a later version of this library.
    for record in try fixture.rows(in: .records) {
      var batch = WriteBatch()
      batch.put(record.key.span.bytes, stamp: Record.stamp) {
        $0.append([9] + record.value.dropFirst())
      }
      try fixture.engine.write(&batch, synced: false)
    }
    #expect {
      try cache.save(bytes(500), for: "k9")
    } throws: { error in
      guard case StoreError.budgetExceeded(let bytes, 1000) = error else { return false }
      return bytes > 1000
    }
    #expect(try fixture.rows(in: .records).count == 5)
    #expect(try fixture.miscount(of: cache) == nil)
  }
}
