import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A store's report of its contents counts each entry once, in its state, and changes nothing.
@Suite struct ContentsTests {
  private func stored(_ rows: [(key: [UInt8], value: [UInt8])]) -> EntryTotal {
    EntryTotal(entries: rows.count, bytes: rows.reduce(0) { $0 + $1.key.count + $1.value.count })
  }

  /// Fills a cache with an entry, or some, of each state: each of another size.
  private func fill(_ fixture: Fixture) throws {
    func open(_ version: Int) throws -> Cache<String, Data> {
      try fixture.store.cache(
        "cache", of: Data.self, lifetime: .fresh(for: .seconds(32), thenStaleFor: .seconds(32)),
        schema: Schema(version: version), coder: .bytes)
    }
    let newer = try open(2)
    try newer.save(Data(count: 1000), for: "newer schema")
    try fixture.reopen()
    let cache = try open(1)
    try cache.save(Data(count: 100), for: "damaged")
    try fixture.put(Array(repeating: 7, count: 200), under: key("damaged", in: cache))
    try cache.save(Data(count: 30), for: "newer format")
    try change(key("newer format", in: cache), in: fixture) { $0[0] = 2 }
    for name in ["expired", "expired too"] { try cache.save(Data(count: 10), for: name) }
    fixture.clock.advance(by: .seconds(40))
    try cache.save(Data(count: 4), for: "stale")
    fixture.clock.advance(by: .seconds(32))
    for count in 0..<3 { try cache.save(Data(count: count), for: "fresh \(count)") }
  }

  private func key(_ key: String, in cache: Cache<String, Data>) throws -> [UInt8] {
    try cache.core.recordKey(of: key, id: cache.core.id).bytes
  }

  /// Changes a record in a way that its checksum agrees with.
  private func change(
    _ key: [UInt8], in fixture: Fixture, _ change: (inout [UInt8]) -> Void
  ) throws {
    var value = try #require(try fixture.engine.get(key.span.bytes))
    change(&value)
    var batch = WriteBatch()
    batch.put(key.span.bytes, stamp: Record.stamp) { $0.append(value) }
    try fixture.engine.write(&batch, synced: false)
  }

  @Test(
    "Entries are counted by state, with their sizes.", arguments: StoreKind.allCases, [true, false])
  func states(kind: StoreKind, isOpen: Bool) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fill(fixture)
    if !isOpen { try fixture.reopen() }
    let rows = try fixture.rows(in: .records)
    func stored(_ prefix: String) -> EntryTotal {
      self.stored(
        rows.filter { String(decoding: $0.key.dropFirst(2), as: UTF8.self).hasPrefix(prefix) })
    }

    let contents = try #require(try fixture.store.contents()["cache"])
    #expect(contents.fresh == stored("fresh"))
    #expect(contents.fresh.entries == 3)
    #expect(contents.stale == stored("stale"))
    #expect(contents.expired == stored("expired"))
    #expect(contents.unreadable == stored("damaged"))
    #expect(contents.newer == stored("newer"))
    #expect(contents.newer.entries == 2)
    #expect(contents.isComplete)
    #expect(try fixture.rows(in: .records).count == rows.count)
  }

  @Test(
    "The backlog is what the next sweep deletes.", arguments: StoreKind.allCases, [true, false])
  func backlog(kind: StoreKind, isOpen: Bool) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(64))
    let endless = try fixture.store.cache("endless", of: Int.self, lifetime: .seconds(64))
    for key in ["a", "b", "saved again"] {
      for _ in 0..<3 {
        try cache.save(1, for: key)
        fixture.clock.advance(by: .seconds(2))
      }
    }
    try endless.save(1, for: "a")
    fixture.clock.advance(by: .seconds(61))
    try cache.save(1, for: "saved again")
    fixture.clock.advance(by: .seconds(3))
    try fixture.reopen()
    let store = fixture.store
    _ = try store.cache("endless", of: Int.self, lifetime: .unlimited)
    if isOpen { _ = try store.cache("cache", of: Int.self, lifetime: .seconds(64)) }

    let contents = try #require(try store.contents()["cache"])
    let none = try #require(try store.contents()["endless"])
    #expect(none.due == EntryTotal())
    // Of three keys, the last was saved again.
    #expect(contents.due.entries == 2)

    try store.sweep()
    #expect(store.statistics.caches["cache"]?.deletions.sweeps == contents.due)
    let after = try #require(try store.contents()["cache"])
    #expect(after.due == EntryTotal())
  }

  @Test("An expired entry whose bucket has not ended is not part of the backlog.")
  func notDue() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    // Buckets of 8 seconds.
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(640))
    fixture.clock.advance(by: .seconds(1))
    try cache.save(1, for: "a")
    fixture.clock.advance(by: .seconds(645))
    let contents = try #require(try fixture.store.contents()["cache"])
    #expect(contents.expired.entries == 1)
    #expect(contents.due == EntryTotal())
  }

  @Test("Damaged and newer entries, which a sweep leaves, are not part of the backlog.")
  func leftBySweep() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fill(fixture)
    fixture.clock.advance(by: .seconds(1000))
    let contents = try #require(try fixture.store.contents()["cache"])
    #expect(contents.due.entries == 6)
    #expect(try fixture.store.sweep() == 6)
  }

  @Test("All registered caches are listed, without cleared entries.")
  func allCaches() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    for name in ["dormant", "open", "damaged"] {
      let cache = try fixture.store.cache(name, of: Int.self)
      try cache.save(1, for: "cleared")
      try cache.removeAll()
      try cache.save(1, for: "a")
    }
    try fixture.put([1, 2, 3, 4, 5], under: Metadata.cache("damaged"))
    try fixture.reopen()
    _ = try fixture.store.cache("open", of: Int.self)
    let contents = try fixture.store.contents()
    #expect(contents.mapValues(\.fresh.entries) == ["dormant": 1, "open": 1, "damaged": 0])
    #expect(contents.mapValues(\.isComplete) == ["dormant": true, "open": true, "damaged": false])
  }

  @Test("A cache in a file with an unreadable part is reported as incomplete.")
  func damagedFile() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    var random = SplitMix64(seed: 1)
    for name in ["damaged", "intact"] {
      let cache = try fixture.store.cache(name, of: Data.self)
      for number in 0..<500 { try cache.save(Data(random.bytes(300)), for: "\(number)") }
    }
    try fixture.engine.compact(EngineRange())
    try fixture.store.close()
    let path = fixture.directory.path(percentEncoded: false)
    let table = try #require(try Damage.files(in: path, endingIn: ".ldb").first)
    try Damage.flipByte(at: 50_000, of: table)
    try fixture.reopen()

    let contents = try fixture.store.contents()
    let (damaged, intact) = (try #require(contents["damaged"]), try #require(contents["intact"]))
    #expect(!damaged.isComplete)
    #expect((400..<500).contains(damaged.fresh.entries))
    #expect(intact.isComplete)
    #expect(intact.fresh.entries == 500)
  }

  @Test("A closed store throws closed.", arguments: StoreKind.allCases)
  func closed(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    _ = try fixture.store.cache("cache", of: Int.self)
    try fixture.store.close()
    #expect(throwsClosed { try fixture.store.contents() })
  }
}
