import AcceptanceRows
import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Batches, touches, clears and validations take effect as a whole, or not at all.
@Suite(.acceptance) struct WritingTests {
  @Test("A batch takes effect as a whole, in its order.", arguments: StoreKind.allCases)
  func batch(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    try notes.save(Note(title: "old"), for: "gone")

    let result = try fixture.store.write { batch in
      batch.save(Note(title: "a"), for: "a", in: notes)
      batch.save(Note(title: "b"), for: "b", in: notes)
      batch.save(Note(title: "a2"), for: "a", in: notes)
      batch.remove("b", from: notes)
      batch.remove("gone", from: notes)
      batch.save(7, for: 7, in: numbers)
      return "done"
    }

    #expect(result == "done")
    #expect(try notes.value(for: "a") == Note(title: "a2"))
    #expect(try notes.value(for: "b") == nil)
    #expect(try notes.value(for: "gone") == nil)
    #expect(try numbers.value(for: 7) == 7)
  }

  @Test(
    "The first failure in a batch is thrown, and nothing is written.", arguments: StoreKind.allCases
  )
  func failedBatch(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let doubles = try fixture.store.cache("doubles", of: [Double].self, coder: .json)
    try doubles.save([1], for: "a")
    let before = try fixture.rows(in: .records).map(\.value)

    #expect(
      throwsStoreError(where: { if case .encoding("b", _) = $0 { true } else { false } }) {
        try fixture.store.write { batch in
          batch.save([2], for: "a", in: doubles)
          batch.save([.nan], for: "b", in: doubles)
          batch.save([3], for: String(repeating: "x", count: 70_000), in: doubles)
        }
      })

    #expect(try fixture.rows(in: .records).map(\.value) == before)
  }

  @Test(
    "A save writes nothing of the saves before it, also of one that failed.",
    arguments: StoreKind.allCases)
  func savesOneByOne(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let doubles = try fixture.store.cache("doubles", of: [Double].self, coder: .json)
    try doubles.save([1], for: "removed")
    try doubles.remove("removed")
    #expect(throws: StoreError.self) { try doubles.save([.nan], for: "failed") }
    // A long value, after which the memory of the save is not kept.
    try doubles.save(Array(repeating: 0.5, count: 100_000), for: "long")
    try doubles.remove("long")

    try doubles.save([2], for: "saved")

    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try doubles.value(for: "saved") == [2])
  }

  @Test("The caller's own error is thrown, and nothing is written.", arguments: StoreKind.allCases)
  func callersError(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)

    #expect(throws: CancellationError.self) {
      try fixture.store.write { batch in
        batch.save(Note(title: "a"), for: "a", in: notes)
        throw CancellationError()
      }
    }

    #expect(try notes.value(for: "a") == nil)
  }

  @Test("A cache of another store is refused.")
  func otherStore() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let other = Store.inMemory()
    let foreign = try other.cache("notes", of: Note.self)

    #expect(
      throwsInvalidArgument {
        try fixture.store.write { $0.save(Note(title: "a"), for: "a", in: foreign) }
      })
    #expect(
      throwsInvalidArgument { try fixture.store.write { $0.removeAll(from: foreign) } })
  }

  @Test("All saves of a batch have one date.", arguments: StoreKind.allCases)
  func oneDate(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let clock = fixture.clock

    try fixture.store.write { batch in
      batch.save(Note(title: "a"), for: "a", in: notes)
      clock.advance(by: .seconds(5))
      batch.save(Note(title: "b"), for: "b", in: notes)
    }

    let dates = try ["a", "b"].map { try notes.entry(for: $0)?.savedAt }
    #expect(dates[0] == dates[1])
    #expect(dates[0] != nil)
  }

  @Test(
    "A save is noted for the bucket of its expiry, unless the lifetime is unlimited.",
    arguments: StoreKind.allCases)
  func noted(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let forever = try fixture.store.cache("forever", of: Note.self, lifetime: .unlimited)
    try notes.save(Note(title: "a"), for: "k")
    try forever.save(Note(title: "b"), for: "k")

    let now = fixture.clock.now()
    let expiry = try #require(Lifetime.days(7).expiry(from: now))
    #expect(
      try fixture.notes() == [
        FoundNote(
          cacheID: notes.core.id,
          bucket: ExpiryNotes.bucket(savedAt: now, expiresAt: expiry), userKey: Array("k".utf8))
      ])
  }

  @Test(
    "A key saved every ten minutes for a week leaves a note for each bucket.",
    arguments: StoreKind.allCases)
  func fewNotes(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)

    // A week of saves, one every ten minutes.
    for _ in 0..<1008 {
      try notes.save(Note(title: "a"), for: "k")
      fixture.clock.advance(by: .seconds(600))
    }

    // Buckets of 8,192 seconds.
    #expect(try fixture.notes().count <= 75)
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test("Touching renews the date and keeps the payload.", arguments: StoreKind.allCases)
  func touch(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "a", body: "b"), for: "k")
    let old = try fixture.onlyRecord().value
    fixture.clock.advance(by: .seconds(8 * 86_400))
    #expect(try notes.lookup(for: "k").kind == "expired")

    #expect(try notes.touch("k") == true)
    #expect(try notes.touch("absent") == false)

    let entry = try #require(try notes.entry(for: "k"))
    #expect(entry.savedAt == fixture.clock.now())
    #expect(entry.value == Note(title: "a", body: "b"))
    let new = try fixture.onlyRecord().value
    // After the header stands the sequence of the save.
    #expect(new[(Record.headerBytes + 8)...] == old[Record.headerBytes...])
    #expect(new[Record.headerBytes...].prefix(8) == old[24..<32])
    #expect(try fixture.notes().count == 2)
  }

  @Test("Clearing a cache removes every entry, and no later one.", arguments: StoreKind.allCases)
  func clear(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let copy = notes
    for number in 0..<100 { try notes.save(Note(title: "\(number)"), for: "\(number)") }
    let id = notes.core.id

    try notes.removeAll()
    try copy.save(Note(title: "new"), for: "new")

    #expect(notes.core.id > id)
    #expect(try notes.value(for: "1") == nil)
    #expect(try notes.value(for: "new") == Note(title: "new"))
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try fixture.notes().count == 1)

    try fixture.reopen()
    let again = try fixture.store.cache("notes", of: Note.self)
    #expect(try again.value(for: "1") == nil)
    #expect(try again.value(for: "new") == Note(title: "new"))
  }

  @Test("A clear in a batch follows the order of the batch.", arguments: StoreKind.allCases)
  func clearInBatch(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "0"), for: "0")

    try fixture.store.write { batch in
      batch.save(Note(title: "1"), for: "1", in: notes)
      batch.removeAll(from: notes)
      batch.save(Note(title: "2"), for: "2", in: notes)
      batch.removeAll(from: notes)
      batch.save(Note(title: "3"), for: "3", in: notes)
    }

    #expect(try ["0", "1", "2"].allSatisfy { try notes.value(for: $0) == nil })
    #expect(try notes.value(for: "3") == Note(title: "3"))
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test("Cache ids are never used again.", arguments: StoreKind.allCases)
  func ids(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var seen: Set<UInt64> = []
    for round in 0..<10 {
      let notes = try fixture.store.cache("notes", of: Note.self)
      let other = try fixture.store.cache("other \(round)", of: Note.self)
      try notes.save(Note(title: "x"), for: "x")
      try notes.removeAll()
      #expect(seen.insert(notes.core.id).inserted)
      #expect(seen.insert(other.core.id).inserted)
      try fixture.reopen()
    }
  }

  @Test(
    "Rows that a late save left under a cleared id are reclaimed at the next opening.",
    arguments: StoreKind.allCases)
  func lateSave(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let oldID = notes.core.id
    try notes.removeAll()
    // Like a save that read the cache's id before the clear.
    var write = WriteBatch()
    try notes.core.add(
      Note(title: "late"), for: "late", id: oldID, savedAt: fixture.clock.now(), to: &write)
    try fixture.engine.write(&write, synced: false)
    #expect(try notes.value(for: "late") == nil)

    try fixture.reopen()

    #expect(try fixture.rows(in: .records).isEmpty)
    #expect(try fixture.rows(in: .notes).isEmpty)
    let marks = try fixture.rows(in: .metadata).filter {
      $0.key.starts(with: Metadata.reclaimPrefix)
    }
    #expect(marks.isEmpty)
  }

  @Test("A large cleared cache is reclaimed in slices.", arguments: StoreKind.allCases)
  func reclaimSlices(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    try fixture.store.write { batch in
      for number in 0..<11_000 { batch.save(number, for: number, in: numbers) }
    }

    try numbers.removeAll()
    #expect(try fixture.rows(in: .records).count == 1000)
    #expect(try fixture.notes().count == 11_000)
    try fixture.reopen()
    #expect(try fixture.rows(in: .records).isEmpty)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test(
    "Validating deletes expired and unreadable entries, and keeps the rest.",
    arguments: StoreKind.allCases)
  func validate(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let lifetime = Lifetime.fresh(for: .days(7), thenStaleFor: .days(1))
    let notes = try fixture.store.cache("notes", of: Note.self, lifetime: lifetime)
    for number in 0..<300 { try notes.save(Note(title: "\(number)"), for: "old \(number)") }
    fixture.clock.advance(by: .seconds(86_400))
    try notes.save(Note(title: "stale"), for: "stale")
    fixture.clock.advance(by: .seconds(7 * 86_400))
    try notes.save(Note(title: "fresh"), for: "fresh")
    try notes.save(Note(title: "bad"), for: "damaged")
    try notes.save(Note(title: "bad"), for: "short")
    try flip(fixture, key: "damaged", in: notes)
    try fixture.put([1, 2, 3], under: notes.core.recordKey(of: "short", id: notes.core.id).bytes)

    let report = try notes.validate()

    #expect(report.expired == 300)
    #expect(report.unreadable == 2)
    #expect(report.kept == 2)
    #expect(try notes.lookup(for: "stale").kind == "stale")
    #expect(try notes.lookup(for: "fresh").kind == "fresh")
    #expect(try fixture.rows(in: .records).count == 2)
    #expect(try notes.validate(maxAge: .days(1)).expired == 1)
    #expect(try notes.validate(maxAge: .days(1)).kept == 1)
  }

  @Test("Validating deletes nothing that was saved meanwhile.")
  func validateMeanwhile() throws {
    let clock = ManualClock()
    let engine = InterruptedEngine(InMemoryEngine())
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .memory)
    let notes = try store.cache("notes", of: Note.self)
    try notes.save(Note(title: "old"), for: "a")
    try notes.save(Note(title: "old"), for: "b")
    clock.advance(by: .seconds(8 * 86_400))

    // One entry is saved again between validate's scan and its deletion.
    engine.beforeNextWrite = { try notes.save(Note(title: "new"), for: "a") }
    let report = try notes.validate()

    #expect(report.expired == 1)
    #expect(report.kept == 1)
    #expect(try notes.value(for: "a") == Note(title: "new"))
    #expect(try notes.lookup(for: "b").kind == "missing")
  }

  @Test("Touching changes nothing that was saved meanwhile.")
  func touchMeanwhile() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let store = try Store(engine: engine, origin: .memory)
    let notes = try store.cache("notes", of: Note.self)
    try notes.save(Note(title: "old"), for: "a")

    engine.beforeNextWrite = { try notes.save(Note(title: "new"), for: "a") }

    #expect(try notes.touch("a") == false)
    #expect(try notes.value(for: "a") == Note(title: "new"))
  }

  @Test("A failed save, removal, clear or touch is a typed error, and changes nothing.")
  func failedWrites() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let store = try Store(engine: engine, origin: .memory)
    let notes = try store.cache("notes", of: Note.self)
    try notes.save(Note(title: "old"), for: "a")
    let writes: [() throws -> Void] = [
      { try notes.save(Note(title: "new"), for: "a") }, { try notes.remove("a") },
      { try notes.removeAll() }, { try notes.touch("a") },
      { try store.write { $0.save(Note(title: "new"), for: "b", in: notes) } },
    ]

    for write in writes {
      engine.beforeNextWrite = { throw StoreError.diskFull }
      #expect(
        throwsStoreError(where: { if case .diskFull = $0 { true } else { false } }) {
          try write()
        })
      #expect(try notes.value(for: "a") == Note(title: "old"))
      #expect(try notes.lookup(for: "b").kind == "missing")
    }
  }

  @Test("A save, a removal and a save take effect in that order.")
  func order() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)

    try notes.save(Note(title: "first"), for: "a")
    try notes.remove("a")
    try notes.save(Note(title: "second"), for: "a")
    let cursor = try notes.entries()

    #expect(try cursor.next()?.entry.get().value == Note(title: "second"))
    #expect(try cursor.next() == nil)
  }

  @Test("A full disk stops a store from reclaiming space, but not from opening.")
  func reclaimFails() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self, lifetime: .unlimited)
    try notes.save(Note(title: "kept"), for: "kept")
    let other = try fixture.store.cache("other", of: Note.self)
    try other.removeAll()
    let engine = InterruptedEngine(fixture.engine)
    engine.beforeNextWrite = { throw StoreError.diskFull }

    let again = try Store(engine: engine, origin: .memory)

    #expect(engine.beforeNextWrite == nil)
    #expect(
      try again.cache("notes", of: Note.self, lifetime: .unlimited).value(for: "kept")?.title
        == "kept")
    let marks = try fixture.rows(in: .metadata).filter {
      $0.key.starts(with: Metadata.reclaimPrefix)
    }
    #expect(marks.count == 1)
  }

  private func flip(_ fixture: Fixture, key: String, in notes: Cache<String, Note>) throws {
    let recordKey = try notes.core.recordKey(of: key, id: notes.core.id).bytes
    let stored = try fixture.rows(in: .records).first { $0.key == recordKey }
    var value = try #require(stored).value
    value[value.count - 1] ^= 1
    try fixture.put(value, under: recordKey)
  }
}
