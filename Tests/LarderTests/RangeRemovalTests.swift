import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Removing a range of keys; ``ModelTests`` mixes it with all other operations.
@Suite struct RangeRemovalTests {
  @Test(
    "What was saved before is removed, and what is saved meanwhile stays.",
    arguments: StoreKind.allCases)
  func beside(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let count = 5000
    for key in 0..<count { try numbers.save(-1, for: key) }
    let saved = Mutex<Set<Int>>([])
    let removed = Mutex(0)
    let failures = Mutex<[String]>([])
    onThreads(4) { thread in
      var random = SplitMix64(seed: UInt64(thread))
      do {
        if thread == 0 {
          let count = try numbers.remove(in: .all)
          removed.withLock { $0 = count }
          return
        }
        for _ in 0..<1000 {
          let key = Int.random(in: 0..<count, using: &random)
          if thread == 1 {
            try numbers.touch(key)
          } else {
            // Saved before the removal or after it: one of both takes effect last.
            try numbers.save(key, for: key + thread * count)
            saved.withLock { _ = $0.insert(key + thread * count) }
          }
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    for key in 0..<count { #expect(try numbers.lookup(for: key).kind == "missing") }
    let rest = try numbers.count()
    let early = saved.withLock { $0.count } - rest
    // A key that was saved before and after is removed once, and there.
    #expect(removed.withLock { $0 } >= count + early)
  }

  @Test("An entry saved during the removal stays, whenever the removal comes to it.")
  func savedMeanwhile() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    for key in 0..<1000 { try numbers.save(-1, for: key) }
    let hooked = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: hooked, options: options, origin: .disk)
    let others = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
    // The first write is the beginning, the second one removes 256 entries.
    hooked.beforeNextWrite = {
      hooked.beforeNextWrite = {
        try others.save(7, for: 10)
        try others.save(7, for: 900)
        try others.touch(20)
        try others.touch(950)
      }
    }
    defer { hooked.beforeNextWrite = nil }
    #expect(try others.remove(in: .upTo(990)) == 988)
    #expect(try others.value(for: 10) == 7)
    #expect(try others.value(for: 900) == 7)
    #expect(try others.lookup(for: 20).kind == "missing")
    #expect(try others.lookup(for: 950).kind == "missing")
    #expect(try others.count() == 12)
  }

  @Test("Expired and damaged entries, and those of a newer program, are removed.")
  func everyState() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, lifetime: .seconds(10))
    for key in ["a", "b", "c"] { try numbers.save(1, for: key) }
    let rows = try fixture.rows(in: .records)
    var damaged = rows[0].value
    damaged[40] ^= 1
    try fixture.put(damaged, under: rows[0].key)
    var later = rows[1].value
    later[3] = 1 << 7
    let laterKey = rows[1].key
    var batch = WriteBatch()
    batch.put(laterKey.span.bytes, stamp: Record.stamp) { $0.append(later) }
    try fixture.engine.write(&batch, synced: false)
    fixture.clock.advance(by: .seconds(20))
    #expect(try numbers.remove(in: .from("a", upTo: "c")) == 2)
    #expect(try fixture.rows(in: .records).map(\.key) == [rows[2].key])
    #expect(try numbers.remove(in: .all) == 1)
    #expect(try numbers.remove(in: .all) == 0)
    #expect(try fixture.rows(in: .records).isEmpty)
  }

  @Test("The names of all caches are listed, open or not.", arguments: StoreKind.allCases)
  func cacheNames(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    #expect(try fixture.store.cacheNames == [])
    _ = try fixture.store.cache("b", of: Int.self)
    _ = try fixture.store.cache("a\u{301}", of: Int.self)
    try fixture.reopen()
    _ = try fixture.store.cache("c", of: Int.self)
    #expect(try fixture.store.cacheNames == ["a\u{301}", "b", "c"])
    try fixture.store.close()
    #expect(throwsClosed { try fixture.store.cacheNames })
  }
}
