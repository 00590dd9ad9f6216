import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Reads return values from memory once they were read from disk, and never another value than the
/// disk has.
@Suite struct MemoryTierTests {
  private func origins<V>(of cache: Cache<String, V>, _ key: String, _ count: Int) throws
    -> [Origin?]
  {
    try (0..<count).map { _ in try cache.entry(for: key)?.origin }
  }

  @Test("The first read after a save is from disk, and the next ones are from memory.")
  func fill() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "a"), for: "k")
    #expect(try origins(of: notes, "k", 3) == [.disk, .memory, .memory])
    #expect(try notes.value(for: "k") == Note(title: "a"))
    #expect(try notes.contains("k"))
    let reads = fixture.store.statistics.caches["notes"]?.reads
    #expect(reads?.fresh == 5)
    #expect(reads?.memory == 4)
    #expect(fixture.store.statistics.memory.entries == 1)
  }

  @Test("An entry from memory has all that it has on disk.")
  func fields() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(
      Note(title: "a"), for: "k", lifetime: .minutes(5), validator: "v1", tags: ["x", "y"])
    fixture.clock.advance(by: .seconds(10))
    let disk = try #require(try notes.entry(for: "k"))
    fixture.clock.advance(by: .seconds(10))
    let memory = try #require(try notes.entry(for: "k"))
    #expect(disk.origin == .disk && memory.origin == .memory)
    #expect(memory.savedAt == disk.savedAt)
    #expect(memory.age == .seconds(20))
    #expect(memory.version == disk.version)
    #expect(memory.validator == "v1")
    #expect(memory.tags == ["x", "y"])
    #expect(memory.lifetime == .minutes(5))
  }

  /// Changes of the key `k`, which holds "old" in memory, and what a read returns afterwards.
  enum Change: String, CaseIterable {
    case save, conditionalSave, update, batch, remove, conditionalRemove, removeRange, clear
    case clearInBatch, invalidateTag, touch, expire, sweep, dropAndOpen, direct

    func make(_ fixture: Fixture, _ notes: Cache<String, Note>) throws -> Note? {
      let (store, new) = (fixture.store, Note(title: "new"))
      switch self {
      case .save: try notes.save(new, for: "k")
      case .conditionalSave: try notes.save(new, for: "k", if: .present)
      case .update: try notes.update("k") { $0 = new }
      case .batch: try store.write { $0.save(new, for: "k", in: notes) }
      case .remove: try notes.remove("k")
      case .conditionalRemove: try notes.remove("k", if: .present)
      case .removeRange: try notes.remove(in: .all)
      case .clear: try notes.removeAll()
      case .clearInBatch: try store.write { $0.removeAll(from: notes) }
      case .invalidateTag: try store.invalidate(tag: "t")
      case .touch: try notes.touch("k")
      case .expire: fixture.clock.advance(by: .seconds(604_800))
      case .sweep:
        fixture.clock.advance(by: .seconds(604_800))
        _ = try store.sweep()
      case .dropAndOpen:
        try store.drop(cache: "notes")
        #expect(throws: StoreError.self) { try notes.value(for: "k") }
        return try store.cache("notes", of: Note.self).value(for: "k")
      case .direct: try Fixture.removeAllRecords(of: fixture)
      }
      return try notes.value(for: "k")
    }

    var result: Note? {
      switch self {
      case .save, .conditionalSave, .update, .batch: Note(title: "new")
      case .touch: Note(title: "old")
      default: nil
      }
    }
  }

  @Test(
    "A change of an entry that is in memory is visible to the next read.",
    arguments: Change.allCases)
  func changes(change: Change) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "old"), for: "k", tags: ["t"])
    #expect(try origins(of: notes, "k", 2) == [.disk, .memory])
    #expect(try change.make(fixture, notes) == change.result)
    if change == .touch { #expect(try notes.entry(for: "k")?.origin == .memory) }
  }

  @Test("A value in memory ends with its fresh time, and a sliding one slides.")
  func lifetimes() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self, lifetime: .seconds(160))
    try notes.save(Note(title: "a"), for: "k")
    #expect(try origins(of: notes, "k", 2) == [.disk, .memory])
    fixture.clock.advance(by: .seconds(159))
    #expect(try notes.entry(for: "k")?.origin == .memory)
    fixture.clock.advance(by: .seconds(1))
    #expect(try notes.value(for: "k") == nil)
    #expect(fixture.store.statistics.memory.entries == 0)

    let sliding = try fixture.store.cache(
      "sliding", of: Note.self, lifetime: .seconds(160), expiry: .sliding)
    try sliding.save(Note(title: "a"), for: "k")
    fixture.clock.advance(by: .seconds(9))
    #expect(try origins(of: sliding, "k", 2) == [.disk, .memory])
    // A 16th has passed: the read goes to the disk, and restarts the lifetime.
    fixture.clock.advance(by: .seconds(1))
    #expect(try sliding.entry(for: "k")?.origin == .disk)
    sliding.core.slides?.waitUntilIdle()
    fixture.clock.advance(by: .seconds(155))
    #expect(try sliding.value(for: "k") == Note(title: "a"))
  }

  @Test("A maximum age for a read applies to values in memory.")
  func maximumAge() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "a"), for: "k")
    #expect(try origins(of: notes, "k", 2) == [.disk, .memory])
    fixture.clock.advance(by: .seconds(60))
    #expect(try notes.lookup(for: "k", maxAge: .seconds(60)).kind == "expired")
    guard case .fresh(let entry) = try notes.lookup(for: "k", maxAge: .seconds(61)) else {
      Issue.record("not fresh")
      return
    }
    #expect(entry.origin == .memory)
  }

  @Test("A type that loses data in coding shows what the disk has, also right after a save.")
  func lossyType() throws {
    struct Lossy: Codable, Sendable, Equatable {
      var kept = 0
      var lost = 0
      private enum CodingKeys: CodingKey { case kept }
    }
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("lossy", of: Lossy.self)
    for round in 1...3 {
      try cache.save(Lossy(kept: round, lost: 9), for: "k")
      for _ in 0..<3 { #expect(try cache.value(for: "k") == Lossy(kept: round, lost: 0)) }
    }
  }

  @Test("Keys that are equal as text and differ in bytes have their own values in memory.")
  func spellings() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    let long = String(repeating: "k", count: 300)
    for (number, key) in ["\u{E9}", "e\u{301}", "", long, long + "x"].enumerated() {
      try cache.save(number, for: key)
    }
    for _ in 0..<2 {
      for (number, key) in ["\u{E9}", "e\u{301}", "", long, long + "x"].enumerated() {
        #expect(try cache.value(for: key) == number)
      }
    }
    #expect(fixture.store.statistics.caches["cache"]?.reads.memory == 5)
  }

  @Test("A closed store returns no value from memory, and holds none.")
  func closed() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "a"), for: "k")
    #expect(try origins(of: notes, "k", 2) == [.disk, .memory])
    try fixture.store.close()
    #expect(throwsClosed { try notes.value(for: "k") })
    #expect(throwsClosed { try notes.contains("k") })
    #expect(fixture.store.statistics.memory.entries == 0)
    #expect(fixture.store.statistics.caches["notes"]?.reads.memory == 1)
  }

  @Test("A store in memory keeps no second copy.")
  func inMemory() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self, memory: .bytes(1000))
    try notes.save(Note(title: "a"), for: "k")
    for _ in 0..<3 { #expect(try notes.value(for: "k") == Note(title: "a")) }
    #expect(fixture.store.statistics.memory == MemoryStatistics())
  }
}

extension Fixture {
  /// Removes all records by a batch of the engine, without the store.
  fileprivate static func removeAllRecords(of fixture: Fixture) throws {
    var batch = WriteBatch()
    for row in try fixture.rows(in: .records) { batch.remove(row.key.span.bytes) }
    try fixture.engine.write(&batch, synced: false)
  }
}

// MARK: - Memory for each cache

extension MemoryTierTests {
  @Test("A cache with memory of its own, or none, does not use the store's.")
  func tiers() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let own = try store.cache("own", of: Note.self, memory: .bytes(100_000))
    let none = try store.cache("none", of: Note.self, memory: .none)
    for cache in [own, none] {
      try cache.save(Note(title: "a"), for: "k")
      for _ in 0..<3 { #expect(try cache.value(for: "k") == Note(title: "a")) }
    }
    #expect(store.statistics.caches["own"]?.reads.memory == 2)
    #expect(store.statistics.caches["none"]?.reads.memory == 0)
    try own.save(Note(title: "b"), for: "k")
    #expect(try own.value(for: "k") == Note(title: "b"))
    #expect(store.statistics.memory.entries == 1)
    #expect(store.context.memory?.shared?.weight == 0)
    try store.drop(cache: "own")
    #expect(store.statistics.memory.entries == 0)
    #expect(store.statistics.caches["own"]?.reads.memory == 2)
  }

  @Test("Another opening of a cache must have the same memory, and uses the same values.")
  func sameMemory() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let first = try fixture.store.cache("notes", of: Note.self, memory: .bytes(100_000))
    try first.save(Note(title: "a"), for: "k")
    #expect(try first.value(for: "k") != nil)
    let second = try fixture.store.cache("notes", of: Note.self, memory: .bytes(100_000))
    #expect(try second.entry(for: "k")?.origin == .memory)
    try second.save(Note(title: "b"), for: "k")
    #expect(try first.value(for: "k") == Note(title: "b"))
    #expect(
      throwsInvalidArgument { try fixture.store.cache("notes", of: Note.self, memory: .none) })
    #expect(
      throwsInvalidArgument { try fixture.store.cache("other", of: Note.self, memory: .bytes(0)) })
  }

  @Test("A value that is larger than a quarter of the limit is returned, and counted as refused.")
  func tooLarge() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "images", of: Data.self, coder: .bytes, memory: .bytes(40_000))
    let small = Data(repeating: 1, count: 5_000)
    let large = Data(repeating: 2, count: 11_000)
    try cache.save(small, for: "small")
    try cache.save(large, for: "large")
    for _ in 0..<2 {
      #expect(try cache.value(for: "small") == small)
      #expect(try cache.value(for: "large") == large)
    }
    let memory = fixture.store.statistics.memory
    #expect(memory.tooLarge == 2)
    #expect(memory.entries == 1)
    #expect(memory.evictions == 0)
  }

  @Test("Values in memory stay below the limit, and are released on demand.")
  func release() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let shared = try store.cache("shared", of: Data.self, keyedBy: Int.self, coder: .bytes)
    let own = try store.cache(
      "own", of: Data.self, keyedBy: Int.self, coder: .bytes, memory: .bytes(50_000))
    for key in 0..<100 {
      for cache in [shared, own] {
        try cache.save(Data(repeating: 1, count: 1_000), for: key)
        _ = try cache.value(for: key)
      }
    }
    #expect(own.core.memory?.residents.weight ?? 0 <= 50_000)
    #expect(own.core.memory?.residents.weight ?? 0 > 40_000)
    #expect(store.statistics.memory.evictions > 50)
    store.releaseMemory(to: 60_000)
    #expect(store.statistics.memory.bytes <= 60_000)
    #expect(store.statistics.memory.bytes > 50_000)
    store.releaseMemory()
    #expect(store.statistics.memory.bytes == 0)
    #expect(store.statistics.memory.entries == 0)
    #expect(try shared.value(for: 7)?.count == 1_000)
    #expect(try shared.entry(for: 7)?.origin == .memory)
  }

  @Test("An eviction from disk spares an entry that is read from memory only.")
  func evictionFromDisk() throws {
    let fixture = try Fixture(.disk, byteBudget: 30_000)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Data.self, keyedBy: Int.self, coder: .bytes)
    try cache.save(Data(repeating: 0, count: 1_000), for: 0)
    #expect(try cache.entry(for: 0)?.origin == .disk)
    for key in 1...200 {
      fixture.clock.advance(by: .seconds(1))
      try cache.save(Data(repeating: 1, count: 1_000), for: key)
      #expect(try cache.entry(for: 0)?.origin == .memory)
    }
    #expect(try cache.value(for: 1) == nil)
  }
}

extension MemoryTierTests {
  @Test("A save touches no memory of another cache.")
  func othersMemory() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let (saved, read) = (
      try fixture.store.cache("saved", of: Note.self, memory: .bytes(100_000)),
      try fixture.store.cache("read", of: Note.self, memory: .bytes(100_000))
    )
    for cache in [saved, read] {
      try cache.save(Note(title: "a"), for: "k")
      #expect(try cache.value(for: "k") == Note(title: "a"))
    }
    let (isLent, hasSaved, isOverdue) = (Flag(), Flag(), Flag())
    let reader = Thread {
      var hash: UInt64 = 0
      let loan = "k".withEncoded { read.core.memory?.lend($0, in: read.core.id, &hash) }
      isLent.raise()
      hasSaved.wait()
      loan?.end()
    }
    reader.start()
    isLent.wait()
    // The only shard of the other cache's memory is locked: a save that looks there waits.
    let limit = TimeLimit(seconds: 10) {
      isOverdue.raise()
      hasSaved.raise()
    }
    try saved.save(Note(title: "b"), for: "k")
    limit.lift()
    hasSaved.raise()
    #expect(!isOverdue.isRaised, "the save waited for the memory of another cache")
    #expect(try saved.value(for: "k") == Note(title: "b"))
  }

  @Test("Memory of a cache's own agrees with the disk after the cache has got another id.")
  func ownMemoryAfterClears() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    func open() throws -> Cache<String, Note> {
      try fixture.store.cache("own", of: Note.self, memory: .bytes(100_000))
    }
    var own = try open()
    for round in 0..<6 {
      for title in ["a \(round)", "b \(round)"] {
        try own.save(Note(title: title), for: "k")
        for _ in 0..<2 { #expect(try own.value(for: "k") == Note(title: title)) }
        #expect(try own.entry(for: "k")?.origin == .memory)
      }
      switch round % 3 {
      case 0: try own.removeAll()
      case 1:
        try fixture.store.write { batch in
          batch.removeAll(from: own)
          batch.save(Note(title: "c"), for: "k", in: own)
        }
        for _ in 0..<2 { #expect(try own.value(for: "k") == Note(title: "c")) }
        try own.remove("k")
      default:
        try fixture.store.drop(cache: "own")
        own = try open()
      }
      #expect(try own.value(for: "k") == nil)
    }
  }

  @Test("A release of memory divides what may stay among many caches, the largest first.")
  func releaseOfMany() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let caches = try (1...8).map { number in
      let cache = try fixture.store.cache(
        "\(number)", of: Data.self, keyedBy: Int.self, coder: .bytes, memory: .bytes(1 << 20))
      for key in 0..<number {
        try cache.save(Data(repeating: 1, count: 10_000), for: key)
        _ = try cache.value(for: key)
      }
      return cache
    }
    let weights = caches.map { $0.core.memory?.residents.weight ?? 0 }
    let all = weights.reduce(0, +)
    #expect(fixture.store.statistics.memory.bytes == all)
    // The largest has to give all that the limit is short of, and has as much.
    fixture.store.releaseMemory(to: all - weights[7] / 2)
    #expect(caches.dropLast().map { $0.core.memory?.residents.weight ?? 0 } == weights.dropLast())
    #expect(caches[7].core.memory?.residents.weight ?? 0 > 0)
    #expect(fixture.store.statistics.memory.bytes <= all - weights[7] / 2)
    fixture.store.releaseMemory(to: weights[0])
    #expect(
      caches.map { $0.core.memory?.residents.statistics.entries ?? 0 } == [1, 0, 0, 0, 0, 0, 0, 0])
  }
}
