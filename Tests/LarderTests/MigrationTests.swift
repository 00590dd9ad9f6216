import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

struct NoteV1: Codable, Sendable { var name: String }

struct NoteV2: Codable, Sendable {
  var name: String
  var text: String
}

extension Schema where Value == Note {
  /// The current schema of notes; the body says which version a note came from.
  static var reading1And2: Schema {
    Schema(version: 3)
      .reading(1, as: NoteV1.self) { Note(title: $0.name, body: "was 1") }
      .reading(2, as: NoteV2.self) { Note(title: $0.name, body: $0.text) }
  }
}

extension Fixture {
  /// The record of a key in a cache called "notes".
  func record(_ key: String, in notes: Cache<String, Note>) throws -> (Record, bytes: [UInt8]) {
    let recordKey = try notes.core.recordKey(of: key, id: notes.core.id).bytes
    let bytes = try #require(try engine.get(recordKey.span.bytes))
    return (try Record(bytes.span.bytes, under: recordKey.span.bytes), bytes)
  }

  /// Saves `count` notes of version 1, under keys of four digits.
  func saveOldNotes(_ count: Int, lifetime: Lifetime = .days(7)) throws {
    let old = try store.cache("notes", of: NoteV1.self, lifetime: lifetime)
    try store.write { batch in
      for number in 0..<count { batch.save(NoteV1(name: "\(number)"), for: key(number), in: old) }
    }
  }

  func key(_ number: Int) -> String { String(format: "%04d", number) }

  func marks() throws -> [(key: [UInt8], value: [UInt8])] {
    try rows(in: .metadata).filter { $0.key.starts(with: Metadata.migratePrefix) }
  }

  /// Expects every note to be readable as version 3, without readers, and to be noted.
  func expectMigrated(_ count: Int) throws {
    try reopen()
    let notes = try store.cache("notes", of: Note.self, schema: Schema(version: 3))
    for number in 0..<count {
      let note = try notes.value(for: key(number))
      try #require(note == Note(title: "\(number)", body: "was 1"), "\(number)")
    }
    try expectNoted(notes)
    #expect(try marks().isEmpty)
  }

  func expectNoted(_ notes: Cache<String, Note>) throws {
    let found = try self.notes()
    let prefix = KeySpace.records.prefix(ofCache: notes.core.id)
    for row in try rows(in: .records) where row.key.starts(with: prefix) {
      let record = try Record(row.value.span.bytes, under: row.key.span.bytes)
      guard let expiresAt = record.expiresAt else { continue }
      let note = FoundNote(
        cacheID: notes.core.id,
        bucket: ExpiryNotes.bucket(savedAt: record.savedAt, expiresAt: expiresAt),
        userKey: Array(row.key[prefix.count...]))
      try #require(found.contains(note))
    }
  }
}

/// A migration rewrites older entries in the current form, and no others.
@Suite struct MigrationTests {
  @Test("Older entries are rewritten and keep their dates.", arguments: StoreKind.allCases)
  func rewrites(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let start = fixture.clock.now()
    try fixture.store.cache("notes", of: NoteV1.self, coder: .json)
      .save(NoteV1(name: "a"), for: "1")
    try fixture.reopen()
    fixture.clock.set(start + 0.1)
    try fixture.store.cache(
      "notes", of: NoteV2.self, schema: Schema(version: 2), coder: .propertyList
    )
    .save(NoteV2(name: "b", text: "text"), for: "2")
    try fixture.reopen()
    fixture.clock.set(start + 1.0 / 3)
    try fixture.store.cache("notes", of: Note.self, schema: .reading1And2, coder: .json)
      .save(Note(title: "c"), for: "json")
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    try notes.save(Note(title: "d"), for: "today's")
    let keys = ["1", "2", "json", "today's"]
    let before = try keys.map { try fixture.record($0, in: notes).0 }
    let todays = try fixture.record("today's", in: notes).bytes
    fixture.clock.advance(by: .seconds(86_400))

    let report = try fixture.store.migrate(notes)

    #expect(report.migrated == 3)
    #expect(report.current == 1)
    #expect(report.expired + report.newer + report.unreadable == 0)
    #expect(try fixture.record("today's", in: notes).bytes == todays)
    for (key, before) in zip(keys, before) {
      let after = try fixture.record(key, in: notes).0
      #expect(after.savedAt == before.savedAt && after.expiresAt == before.expiresAt)
      #expect(after.schemaVersion == 3 && after.coder == 1 && after.flags == before.flags)
    }
    try fixture.expectNoted(notes)
    try fixture.reopen()
    let readers = try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 3))
    #expect(try readers.value(for: "1") == Note(title: "a", body: "was 1"))
    #expect(try readers.value(for: "2") == Note(title: "b", body: "text"))
    #expect(try readers.value(for: "json") == Note(title: "c"))
    #expect(try readers.entry(for: "1")?.savedAt == start)
    #expect(try fixture.store.migrate(readers).current == 4)
  }

  @Test(
    "Entries of other caches, and expiry dates of older lifetimes, stay as they are.",
    arguments: StoreKind.allCases)
  func others(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(3, lifetime: .unlimited)
    let other = try fixture.store.cache("other", of: NoteV1.self)
    try other.save(NoteV1(name: "other"), for: "0001")
    try fixture.reopen()
    let notes = try fixture.store.cache(
      "notes", of: Note.self, lifetime: .days(9), schema: .reading1And2)
    fixture.clock.advance(by: .seconds(86_400))

    #expect(try fixture.store.migrate(notes).migrated == 3)

    // They were saved with no limit, which a migration keeps: they have no note.
    #expect(try fixture.record("0001", in: notes).0.expiresAt == nil)
    #expect(try fixture.notes().count == 1)
    let again = try fixture.store.cache("other", of: NoteV1.self)
    #expect(try again.value(for: "0001")?.name == "other")
  }

  @Test("An entry's validator is kept.")
  func validator() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.saveOldNotes(1)
    let stored = try fixture.onlyRecord()
    var bytes = Array(stored.value[..<Record.headerBytes])
    bytes[1] |= Record.Flag.hasValidator
    bytes += [4] + Array("etag".utf8) + stored.value[Record.headerBytes...]
    var rows = WriteBatch()
    rows.put(stored.key.span.bytes, stamp: Record.stamp) { $0.append(bytes) }
    try fixture.engine.write(&rows, synced: false)
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)

    #expect(try fixture.store.migrate(notes).migrated == 1)

    let (record, after) = try fixture.record("0000", in: notes)
    #expect(record.validator.map { Array(after[$0]) } == Array("etag".utf8))
    #expect(try notes.value(for: "0000") == Note(title: "0", body: "was 1"))
    try fixture.expectNoted(notes)
  }

  @Test("Stale entries are migrated, and expired ones are left.", arguments: StoreKind.allCases)
  func expired(kind: StoreKind) throws {
    let lifetime = Lifetime.fresh(for: .seconds(100), thenStaleFor: .seconds(50))
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let old = try fixture.store.cache("notes", of: NoteV1.self, lifetime: lifetime)
    try old.save(NoteV1(name: "e"), for: "expired")
    fixture.clock.advance(by: .seconds(50))
    try old.save(NoteV1(name: "s"), for: "stale")
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(100))
    let notes = try fixture.store.cache(
      "notes", of: Note.self, lifetime: lifetime, schema: .reading1And2)
    let before = try fixture.record("expired", in: notes).bytes

    let report = try fixture.store.migrate(notes)

    #expect(report.migrated == 1 && report.expired == 1)
    #expect(try fixture.record("expired", in: notes).bytes == before)
    #expect(try notes.lookup(for: "stale").kind == "stale")
    #expect(try fixture.record("stale", in: notes).0.schemaVersion == 3)
  }

  @Test("Unreadable and newer entries stay byte for byte.", arguments: StoreKind.allCases)
  func unreadable(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(3)
    let damaged = try fixture.rows(in: .records)[1]
    try fixture.put(damaged.value.dropLast() + [damaged.value.last! ^ 1], under: damaged.key)
    try fixture.reopen()
    try fixture.store.cache("notes", of: Int.self, schema: Schema(version: 2)).save(1, for: "int")
    try fixture.reopen()
    try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 0))
      .save(Note(title: "0"), for: "no reader")
    try fixture.reopen()
    try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 4))
      .save(Note(title: "4"), for: "newer")
    let unsupported = try fixture.rows(in: .records)[0]
    var rows = WriteBatch()
    rows.put(unsupported.key.span.bytes, stamp: Record.stamp) {
      $0.append([2] + unsupported.value[1...])
    }
    try fixture.engine.write(&rows, synced: false)
    try fixture.reopen()
    let before = try fixture.rows(in: .records)
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)

    let report = try fixture.store.migrate(notes)

    #expect(report.migrated == 1)
    #expect(report.unreadable == 3)
    #expect(report.newer == 2)
    let after = try fixture.rows(in: .records)
    #expect(after.map(\.key) == before.map(\.key))
    for (before, after) in zip(before, after) where !before.key.ends(with: "0002") {
      #expect(before.value == after.value)
    }
    #expect(try notes.value(for: "0002") == Note(title: "2", body: "was 1"))
  }

  @Test("An entry that the new coder cannot encode stays as it is.")
  func unencodable() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let old = try fixture.store.cache("numbers", of: Double.self)
    try old.save(.nan, for: "nan")
    try old.save(1, for: "one")
    try fixture.reopen()
    let numbers = try fixture.store.cache("numbers", of: Double.self, coder: .json)

    let report = try fixture.store.migrate(numbers)

    #expect(report.migrated == 1 && report.unreadable == 1)
    #expect(try numbers.value(for: "nan")?.isNaN == true)
    #expect(try fixture.store.migrate(numbers).current == 1)
  }

  @Test("A cache of another store is refused.")
  func otherStore() throws {
    let notes = try Store.inMemory().cache("notes", of: Note.self)
    let store = Store.inMemory()
    _ = try store.cache("notes", of: Note.self)
    #expect(throwsInvalidArgument { try store.migrate(notes) })
  }

  @Test("A cache without older entries is not written.")
  func nothingOld() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.store.cache("notes", of: Note.self).save(Note(title: "t"), for: "k")
    let engine = InterruptedEngine(fixture.engine)
    let store = try Store(engine: engine, origin: .memory)
    let notes = try store.cache("notes", of: Note.self)
    engine.beforeNextWrite = { Issue.record("a write") }
    #expect(try store.migrate(notes).current == 1)
  }

  @Test("A closed store throws closed.")
  func closed() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try fixture.store.close()
    #expect(
      throwsStoreError(where: { if case .closed = $0 { true } else { false } }) {
        try fixture.store.migrate(notes)
      })
  }
}

extension [UInt8] {
  fileprivate func ends(with text: String) -> Bool {
    suffix(text.utf8.count).elementsEqual(text.utf8)
  }
}
