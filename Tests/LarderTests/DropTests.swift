import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Dropping a cache; ``ModelTests`` mixes it with all other operations.
@Suite struct DropTests {
  @Test("Opening a cache after a drop reads the names of no other caches.")
  func namesAfterDrop() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let store = try Store(engine: engine, origin: .memory)
    for name in ["a", "e\u{301}", "c"] { _ = try store.cache(name, of: Int.self) }
    #expect(throwsInvalidArgument { try store.cache("\u{e9}", of: Int.self) })
    try store.drop(cache: "a")
    try store.drop(cache: "e\u{301}")
    let cursors = engine.cursorCount
    // The other spelling of a name is free with it.
    for name in ["a", "b", "\u{e9}"] { _ = try store.cache(name, of: Int.self) }
    // Two for each new cache, which look for rows under its id.
    #expect(engine.cursorCount == cursors + 6)
    #expect(throwsInvalidArgument { try store.cache("e\u{301}", of: Int.self) })
    try store.close()
  }

  @Test(
    "A dropped cache is gone, and its name can be used with keys of another kind.",
    arguments: StoreKind.allCases, [true, false])
  func reuse(kind: StoreKind, isOpen: Bool) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: String.self)
    let other = try fixture.store.cache("other", of: Int.self)
    let oldID = notes.core.id
    for number in 0..<10 { try notes.save("old", for: "\(number)") }
    try other.save(1, for: "kept")
    if !isOpen { try fixture.reopen() }

    #expect(try fixture.store.drop(cache: "notes"))
    #expect(try fixture.store.drop(cache: "notes") == false)
    #expect(try fixture.store.drop(cache: "") == false)
    #expect(try fixture.store.drop(cache: String(repeating: "x", count: 300)) == false)

    #expect(try fixture.store.cacheNames == ["other"])
    #expect(try fixture.store.contents()["notes"] == nil)
    #expect(try fixture.rows(in: .records).count == 1)
    let again = try fixture.store.cache(
      "notes", of: Int.self, keyedBy: Int.self, lifetime: .days(1), schema: Schema(version: 3))
    #expect(again.core.id > oldID)
    #expect(try again.count() == 0)
    try again.save(5, for: 5)
    try fixture.reopen()
    let reopened = try fixture.store.cache(
      "notes", of: Int.self, keyedBy: Int.self, lifetime: .days(1), schema: Schema(version: 3))
    #expect(try reopened.value(for: 5) == 5)
    #expect(try fixture.store.cache("other", of: Int.self).value(for: "kept") == 1)
    #expect(try reclaimMarks(fixture).isEmpty)
  }

  @Test("Every call on a dropped cache throws, also after its name is used again.")
  func calls() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self)
    try cache.save(1, for: "k")
    let entry = try #require(try cache.entry(for: "k"))
    try store.drop(cache: "a")
    let calls: [() throws -> Void] = [
      { _ = try cache.value(for: "k") }, { _ = try cache.entry(for: "k") },
      { _ = try cache.lookup(for: "k") }, { _ = try cache.contains("k") },
      { _ = try cache.values(for: ["k"]) }, { _ = try cache.lookups(for: ["k"])[0].get() },
      { try cache.save(2, for: "k") }, { try cache.save(2, for: "k", if: .absent) },
      { try cache.save(2, for: "k", if: .unchanged(since: entry)) },
      { try cache.update("k") { $0 = 2 } }, { try cache.remove("k") },
      { try cache.remove("k", if: .present) }, { try cache.remove(in: .all) },
      { try cache.removeAll() }, { try cache.touch("k") }, { try cache.validate() },
      { try store.migrate(cache) }, { _ = try cache.keys() }, { _ = try cache.entries() },
      { _ = try cache.lookups(states: .fresh) }, { _ = try cache.count() },
      { try store.write { $0.save(2, for: "k", in: cache) } },
      { try store.write { $0.remove("k", from: cache) } },
      { try store.write { $0.removeAll(from: cache) } },
    ]
    for (index, call) in calls.enumerated() {
      #expect(throwsDropped(call), "call \(index)")
    }
    let new = try store.cache("a", of: Int.self)
    try new.save(3, for: "k")
    for (index, call) in calls.enumerated() {
      #expect(throwsDropped(call), "call \(index)")
    }
    #expect(try new.value(for: "k") == 3)
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test(
    "A batch that was begun before a drop does not bring the cache back.",
    arguments: [true, false])
  func batch(clears: Bool) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self)
    let other = try store.cache("b", of: Int.self)
    func write() throws {
      try store.write { batch in
        batch.save(1, for: "x", in: other)
        if clears { batch.removeAll(from: cache) }
        batch.save(1, for: "k", in: cache)
        try store.drop(cache: "a")
      }
    }
    if clears {
      #expect(throwsDropped(write))
      #expect(try other.value(for: "x") == nil)
    } else {
      // Its save counts as earlier than the drop.
      try write()
      #expect(try other.value(for: "x") == 1)
    }
    #expect(try store.cacheNames == ["b"])
    #expect(try store.cache("a", of: Int.self).count() == 0)
    try fixture.reopen()
    #expect(try fixture.store.cache("a", of: Int.self).count() == 0)
    #expect(try fixture.rows(in: .records).count == (clears ? 0 : 1))
    #expect(try reclaimMarks(fixture).isEmpty)
  }

  @Test("A large dropped cache is reclaimed in slices, and its metadata with it.")
  func slices() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try fixture.store.cache(
      "numbers", of: Int.self, keyedBy: Int.self, byteBudget: 1 << 30)
    let metadata = try fixture.rows(in: .metadata).count
    try fixture.store.write { batch in
      for number in 0..<11_000 { batch.save(number, for: number, in: numbers) }
    }
    try fixture.store.drop(cache: "numbers")
    #expect(try fixture.rows(in: .records).count == 1000)
    for _ in 0..<2 { try fixture.reopen() }
    #expect(try fixture.rows(in: .records).isEmpty)
    #expect(try fixture.rows(in: .notes).isEmpty)
    // Without the registration and the byte count.
    #expect(try fixture.rows(in: .metadata).count == metadata - 2)
  }

  @Test("The bytes of a dropped cache are free in the store's budget.", arguments: [true, false])
  func budget(isOpen: Bool) throws {
    let fixture = try Fixture(.disk, byteBudget: 100_000)
    defer { fixture.end() }
    let bytes = [UInt8](repeating: 7, count: 50_000)
    let old = try fixture.store.cache("a", of: [UInt8].self, coder: .bytes)
    try old.save(bytes, for: "k")
    let id = old.core.id
    if !isOpen { try fixture.reopen() }
    let accounting = fixture.store.context.budgets.accounting
    #expect(accounting.used(of: 0) > 50_000)
    try fixture.store.drop(cache: "a")
    #expect(accounting.used(of: 0) == 0)
    #expect(accounting.count(id) == nil)
    let cache = try fixture.store.cache("a", of: [UInt8].self, coder: .bytes)
    try cache.save(bytes, for: "new")
    let used = accounting.used(of: 0)
    try fixture.reopen()
    #expect(fixture.store.context.budgets.accounting.used(of: 0) == used)
  }

  @Test("A damaged registration, and one of a newer program, are refused, and kept.")
  func refused() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    for name in ["damaged", "newer"] {
      try fixture.store.cache(name, of: Int.self).save(1, for: "k")
    }
    try fixture.reopen()
    try fixture.put([1, 2, 3, 4, 5], under: Metadata.cache("damaged"))
    var rows = WriteBatch()
    rows.putMetadata(Array("{\"id\":2,\"later\":1}".utf8), under: Metadata.cache("newer"))
    try fixture.engine.write(&rows, synced: false)
    #expect(throwsCorrupt("damaged", "") { try fixture.store.drop(cache: "damaged") })
    #expect(
      throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }) {
        try fixture.store.drop(cache: "newer")
      })
    #expect(try fixture.store.cacheNames == ["damaged", "newer"])
    #expect(try fixture.rows(in: .records).count == 2)
    try fixture.store.close()
    #expect(throwsClosed { try fixture.store.drop(cache: "newer") })
  }

  @Test("A name is dropped by its bytes, and frees its other spellings.")
  func spellings() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    _ = try fixture.store.cache("\u{E9}", of: Int.self)
    #expect(try fixture.store.drop(cache: "e\u{301}") == false)
    #expect(try fixture.store.drop(cache: "\u{E9}"))
    _ = try fixture.store.cache("e\u{301}", of: Int.self)
    #expect(throwsInvalidArgument { try fixture.store.cache("\u{E9}", of: Int.self) })
  }

  @Test("A drop that fails changes nothing, if it has not reached the disk.")
  func failure() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let store = try Store(engine: engine, origin: .memory)
    let cache = try store.cache("a", of: Int.self)
    try cache.save(1, for: "k")
    engine.beforeNextWrite = { throw StoreError.diskFull }
    #expect(
      throwsStoreError(where: { if case .diskFull = $0 { true } else { false } }) {
        try store.drop(cache: "a")
      })
    #expect(try cache.value(for: "k") == 1)
    try cache.save(2, for: "k")
    #expect(try store.drop(cache: "a"))
  }

  /// The next calls find out when the database is reopened.
  @Test("A drop that failed and took effect on reopening drops the open cache, too.")
  func lateDrop() async throws {
    let base = InMemoryEngine()
    let engine = InterruptedEngine(base)
    var options = Store.Options()
    options.byteBudget = 1 << 20
    let store = try Store(engine: engine, options: options, origin: .memory)
    let cache = try store.cache("a", of: Int.self)
    let other = try store.cache("b", of: Int.self)
    try cache.save(1, for: "k")
    let changes = cache.changes()
    let id = cache.core.id
    engine.beforeNextWrite = { throw StoreError.io("a failure") }
    #expect(throws: StoreError.self) { try store.drop(cache: "a") }
    var rows = WriteBatch()
    rows.remove(Metadata.cache("a").span.bytes)
    rows.putMetadata([], under: Metadata.reclaim(id))
    try base.write(&rows, synced: true)
    // As the engine does when it has reopened the database.
    let participant = try #require(engine.participant)
    func reopen() -> Bool {
      participant.reopened { key throws(StoreError) in try base.get(key.span.bytes) }
    }
    #expect(!reopen())
    #expect(reopen())
    #expect(throwsDropped { try cache.save(2, for: "k") })
    #expect(store.context.budgets.accounting.count(id) == nil)
    try other.save(1, for: "k")
    var kinds: [String] = []
    for await change in changes { kinds.append("\(change.kind)") }
    #expect(kinds == ["cleared"])
    #expect(try store.drop(cache: "a") == false)
    #expect(try store.cache("a", of: Int.self).core.id > id)
  }

  /// A call that opens the cache meanwhile is based on its old id, and must not write under it.
  @Test("After a failed drop of a cache that is not open, the write that reopens the store throws.")
  func lateDropOfClosedCache() throws {
    let base = InMemoryEngine()
    _ = try Store(engine: base, origin: .memory).cache("a", of: Int.self)
    let engine = InterruptedEngine(base)
    let store = try Store(engine: engine, origin: .memory)
    let participant = try #require(engine.participant)
    func reopen() -> Bool {
      participant.reopened { key throws(StoreError) in try base.get(key.span.bytes) }
    }
    #expect(reopen())
    engine.beforeNextWrite = { throw StoreError.io("a failure") }
    #expect(throws: StoreError.self) { try store.drop(cache: "a") }
    #expect(!reopen())
    #expect(reopen())
  }

  @Test("An observer of a dropped cache gets one clear, and its sequence ends.")
  func observers() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let (all, one) = (cache.changes(), cache.changes(for: "y"))
    try cache.save(1, for: "x")
    try fixture.store.drop(cache: "a")
    let late = cache.changes()
    let new = try fixture.store.cache("a", of: Int.self)
    try new.save(2, for: "y")
    func kinds(_ changes: Changes<String, Int>) async -> [String] {
      var kinds: [String] = []
      for await change in changes { kinds.append("\(change.kind)") }
      return kinds
    }
    #expect(await kinds(all) == ["set(1)", "cleared"])
    #expect(await kinds(one) == ["cleared"])
    #expect(await kinds(late) == [])
  }

  @Test("A sweep leaves the rows of a cache that was dropped while it ran.")
  func sweep() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    for number in 0..<1000 { try numbers.save(number, for: number) }
    try fixture.store.context.writeNotes()
    fixture.clock.advance(by: .seconds(8 * 86_400))
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: engine, options: options, origin: .memory)
    let id = numbers.core.id
    engine.beforeNextWrite = {
      var rows = WriteBatch()
      rows.remove(Metadata.cache("numbers").span.bytes)
      rows.putMetadata([], under: Metadata.reclaim(id))
      try fixture.engine.write(&rows, synced: false)
    }
    #expect(try store.sweep() == 256)
    #expect(try fixture.rows(in: .records).count == 744)
  }

  @Test(
    "Saves beside drops are kept in the newest cache or not at all.",
    arguments: StoreKind.allCases)
  func beside(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let failures = Mutex<[String]>([])
    let drops = Atomic(0)
    let ended = Atomic(0)
    onThreads(4) { thread in
      defer { ended.add(1, ordering: .releasing) }
      for round in 0..<(thread == 0 ? .max : 200) {
        do {
          if thread == 0 {
            // The last drop comes after all other calls, and finds what they have left.
            let isLast = ended.load(ordering: .acquiring) == 3
            if try store.drop(cache: "a") { drops.add(1, ordering: .relaxed) }
            if isLast { return }
            continue
          }
          let cache = try store.cache("a", of: Int.self, keyedBy: Int.self)
          try cache.save(round, for: thread)
          if thread == 1 { try cache.removeAll() }
          if thread == 2 { try cache.touch(thread) }
          let cursor = try cache.lookups(states: .fresh, order: .descending)
          while try cursor.next() != nil {}
        } catch {
          guard !throwsDropped({ throw error }) else { continue }
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(drops.load(ordering: .relaxed) > 0)
    try store.drop(cache: "a")
    let cache = try store.cache("a", of: Int.self, keyedBy: Int.self)
    #expect(try cache.count() == 0)
    for key in 1..<4 { try cache.save(-1, for: key) }
    try fixture.reopen()
    let again = try fixture.store.cache("a", of: Int.self, keyedBy: Int.self)
    for key in 1..<4 { #expect(try again.value(for: key) == -1) }
    #expect(try fixture.rows(in: .records).count == 3)
    #expect(try fixture.notes().count == 3)
    #expect(try reclaimMarks(fixture).isEmpty)
  }

  private func reclaimMarks(_ fixture: Fixture) throws -> [[UInt8]] {
    try fixture.rows(in: .metadata).map(\.key).filter { $0.starts(with: Metadata.reclaimPrefix) }
  }
}

private func throwsDropped<R>(_ body: () throws -> R) -> Bool {
  throwsStoreError(
    where: { error in
      guard case .invalidArgument(let message) = error else { return false }
      return message.contains("was dropped")
    }, body)
}
