import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A migration keeps the writes of others, and continues after a failure.
@Suite struct MigrationInterruptionTests {
  /// A store on the fixture's engine that calls `beforeWrite` before each write, with the number of
  /// the write from 1.
  private func open(
    _ fixture: Fixture, beforeWrite: @escaping (Int) throws -> Void
  ) throws -> (store: Store, notes: Cache<String, Note>, start: () -> Void) {
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: engine, options: options, origin: .memory)
    let notes = try store.cache("notes", of: Note.self, schema: .reading1And2)
    var count = 0
    func arm() {
      engine.beforeNextWrite = {
        count += 1
        try beforeWrite(count)
        arm()
      }
    }
    fixture.atEnd = { engine.beforeNextWrite = nil }
    return (store, notes, arm)
  }

  private func isDiskFull(_ error: StoreError) -> Bool {
    if case .diskFull = error { true } else { false }
  }

  /// Migrates until the write with this number fails.
  private func migrate(_ fixture: Fixture, failingAt number: Int) throws {
    let (store, notes, start) = try open(fixture) { count in
      if count == number { throw StoreError.diskFull }
    }
    start()
    #expect(throwsStoreError(where: isDiskFull) { try store.migrate(notes) })
  }

  /// Saves 1,000 old notes, migrates some of them until a write fails, and reopens the store.
  private func interruptMigration(of fixture: Fixture) throws {
    try fixture.saveOldNotes(1000)
    try fixture.reopen()
    try migrate(fixture, failingAt: 4)
    try fixture.reopen()
  }

  @Test("Saves and removals during a migration are not undone.", arguments: StoreKind.allCases)
  func savedMeanwhile(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(300)
    try fixture.reopen()
    var notes: Cache<String, Note>?
    let (store, opened, start) = try open(fixture) { count in
      guard count == 1 else { return }
      try notes?.save(Note(title: "new"), for: "0005")
      try notes?.remove("0006")
      try notes?.save(Note(title: "new"), for: "0299")
    }
    notes = opened
    start()

    let report = try store.migrate(opened)

    #expect(report.migrated == 297 && report.current == 2)
    #expect(try opened.value(for: "0005") == Note(title: "new"))
    #expect(try opened.lookup(for: "0006").kind == "missing")
    #expect(try opened.value(for: "0299") == Note(title: "new"))
    #expect(try opened.value(for: "0007") == Note(title: "7", body: "was 1"))
  }

  @Test(
    "An entry touched during a migration is migrated with its new date.",
    arguments: StoreKind.allCases)
  func touchedMeanwhile(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(300)
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(60))
    var notes: Cache<String, Note>?
    let (store, opened, start) = try open(fixture) { count in
      guard count == 1 else { return }
      try notes?.touch("0005")
    }
    notes = opened
    start()

    #expect(try store.migrate(opened).migrated == 300)

    let record = try fixture.record("0005", in: opened).0
    #expect(record.schemaVersion == 3)
    #expect(record.savedAt == fixture.clock.now())
    try fixture.expectMigrated(300)
  }

  @Test(
    "An entry touched just before a migration failed is migrated by the next one.",
    arguments: StoreKind.allCases)
  func touchedBeforeFailure(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(600)
    try fixture.reopen()
    var notes: Cache<String, Note>?
    // The second slice is written without the touched entry, and the write that handles it fails.
    let (store, opened, start) = try open(fixture) { count in
      if count == 2 { try notes?.touch("0300") }
      if count == 3 { throw StoreError.diskFull }
    }
    notes = opened
    start()
    #expect(throwsStoreError(where: isDiskFull) { try store.migrate(opened) })

    try fixture.reopen()
    let again = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    try fixture.store.migrate(again)
    try fixture.expectMigrated(600)
  }

  @Test(
    "A failed migration keeps the finished slices, and the next one continues there.",
    arguments: StoreKind.allCases, [1, 2, 3, 4, 5])
  func continues(kind: StoreKind, failing: Int) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(1000)
    try fixture.reopen()
    try migrate(fixture, failingAt: failing)
    let done = try fixture.rows(in: .records).count { $0.value[4] == 3 }
    #expect(done == min(1000, (failing - 1) * 256))
    #expect(try fixture.marks().count == (failing > 2 ? 1 : 0))

    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    let report = try fixture.store.migrate(notes)

    // Only the slice before the failed write is scanned again.
    let again = failing == 1 ? 0 : failing == 5 ? 1000 - 3 * 256 : 256
    #expect(report.current == again && report.migrated == 1000 - again)
    try fixture.expectMigrated(1000)
  }

  @Test("Slices are limited by bytes, too.")
  func sliceBytes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let old = try fixture.store.cache("notes", of: NoteV1.self)
    let text = String(repeating: "x", count: 100_000)
    for number in 0..<40 { try old.save(NoteV1(name: text), for: "\(number)") }
    try fixture.reopen()
    var writes = 0
    let (store, notes, start) = try open(fixture) { writes = $0 }
    start()
    #expect(try store.migrate(notes).migrated == 40)
    // A slice holds 11 entries; the last write removes the mark.
    #expect(writes == 5)
  }

  @Test("A cleared cache ignores the mark from before the clear.", arguments: StoreKind.allCases)
  func markOfClearedCache(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try interruptMigration(of: fixture)
    let cleared = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    try cleared.removeAll()
    #expect(try fixture.store.migrate(cleared) == MigrationReport())
    // As a program of version 1 would save.
    var write = WriteBatch()
    let settings = CacheSettings(
      keyType: String.self, valueType: NoteV1.self, lifetime: .days(7), schemaVersion: 1,
      readerVersions: [], coder: .binary, byteBudget: nil, expiry: .sinceSaved, memory: .none,
      loading: Loading(), overwritesNewer: false)
    let core = CacheCore<NoteV1>(
      "notes", settings, schema: Schema(version: 1), coder: .binary, readers: [:],
      recentReads: nil, memory: nil, in: fixture.store.context)
    try core.add(
      NoteV1(name: "0"), for: "0000", id: cleared.core.id, savedAt: fixture.clock.now(), to: &write)
    try fixture.engine.write(&write, synced: false)
    #expect(try fixture.store.migrate(cleared).migrated == 1)
    try fixture.expectMigrated(1)
  }

  @Test("A cache cleared during a migration stays empty.", arguments: StoreKind.allCases)
  func clearedMeanwhile(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(1000)
    try fixture.reopen()
    var notes: Cache<String, Note>?
    let (store, opened, start) = try open(fixture) { count in
      if count == 3 { try notes?.removeAll() }
    }
    notes = opened
    start()

    try store.migrate(opened)

    let keys = try opened.keys()
    #expect(try keys.next() == nil)
    try opened.save(Note(title: "new"), for: "new")
    try fixture.reopen()
    try fixture.reopen()
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try fixture.notes().count == 1)
    #expect(try fixture.marks().isEmpty)
  }

  @Test(
    "An entry that an older program saved between two migrations is migrated.",
    arguments: StoreKind.allCases)
  func olderProgram(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try interruptMigration(of: fixture)
    try fixture.store.cache("notes", of: NoteV1.self, overwritesNewer: true)
      .save(NoteV1(name: "0"), for: "0000")
    try fixture.reopen()

    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    try fixture.store.migrate(notes)

    #expect(try fixture.record("0000", in: notes).0.schemaVersion == 3)
    try fixture.expectMigrated(1000)
  }

  @Test(
    "An entry saved with another coder between two migrations is migrated.",
    arguments: StoreKind.allCases)
  func otherCoder(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try interruptMigration(of: fixture)
    try fixture.store.cache("notes", of: Note.self, schema: .reading1And2, coder: .json)
      .save(Note(title: "0", body: "was 1"), for: "0000")
    try fixture.reopen()

    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    try fixture.store.migrate(notes)

    #expect(try fixture.record("0000", in: notes).0.coder == 1)
    try fixture.expectMigrated(1000)
  }

  @Test("Opening with another lifetime keeps the mark.", arguments: StoreKind.allCases)
  func otherLifetime(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try interruptMigration(of: fixture)
    let notes = try fixture.store.cache(
      "notes", of: Note.self, lifetime: .days(70), schema: .reading1And2)
    #expect(try fixture.store.migrate(notes).current == 256)
  }

  /// The defects of a mark.
  enum BadMark: CaseIterable {
    case otherSchema, otherCoder, damaged, notAMark
  }

  @Test(
    "A damaged mark, or one for another schema or coder, is ignored.", arguments: BadMark.allCases)
  func badMark(bad: BadMark) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.saveOldNotes(10)
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    var mark = MigrationMark(
      of: notes.core, reached: Data("0008".utf8), report: MigrationReport())
    if bad == .otherSchema { mark.schemaVersion = 2 }
    if bad == .otherCoder { mark.coder = 2 }
    let key = Metadata.migration(notes.core.id)
    let body = bad == .notAMark ? Array("[]".utf8) : Array(try JSONEncoder().encode(mark))
    var value = Metadata.sealed(body, under: key)
    if bad == .damaged { value[0] ^= 1 }
    try fixture.put(value, under: key)

    #expect(try fixture.store.migrate(notes).migrated == 10)
    try fixture.expectMigrated(10)
  }

  @Test("A migration continues after the key of its mark, with its report.")
  func continuesAfterMark() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.saveOldNotes(10)
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    var report = MigrationReport()
    report.unreadable = 7
    let mark = MigrationMark(of: notes.core, reached: Data("0003".utf8), report: report)
    let key = Metadata.migration(notes.core.id)
    try fixture.put(
      Metadata.sealed(Array(try JSONEncoder().encode(mark)), under: key), under: key)

    let found = try fixture.store.migrate(notes)

    #expect(found.migrated == 6 && found.unreadable == 7)
    #expect(try fixture.record("0003", in: notes).0.schemaVersion == 1)
    #expect(try fixture.record("0004", in: notes).0.schemaVersion == 3)
  }

  @Test("The mark has the documented format.")
  func markFormat() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.saveOldNotes(1000)
    try fixture.reopen()
    try migrate(fixture, failingAt: 3)

    let mark = try #require(try fixture.marks().first)
    #expect(mark.key == [0] + Array("migrate/".utf8) + [0, 0, 0, 0, 0, 0, 0, 1])
    #expect(mark.value.prefix(4) == [0x76, 0x9F, 0x0D, 0x26])
    #expect(
      String(decoding: mark.value.dropFirst(4), as: UTF8.self) == """
        {"coder":1,"reached":"MDI1NQ==","report":{"current":0,"expired":0,"migrated":256,\
        "newer":0,"unreadable":0},"schemaVersion":3}
        """)
  }

  @Test(
    "An unreadable part of a file is reported by every migration.", arguments: [false, true])
  func unreadablePart(isSuspendedBeforeWrites: Bool) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let old = try fixture.store.cache("notes", of: NoteV1.self)
    var random = SplitMix64(seed: 1)
    for number in 0..<1000 {
      let noise = Data(random.bytes(300)).base64EncodedString()
      try old.save(NoteV1(name: noise), for: fixture.key(number))
    }
    try fixture.store.context.writeNotes()
    try fixture.engine.compact(EngineRange())
    try fixture.store.close()
    let path = fixture.directory.path(percentEncoded: false)
    let table = try #require(try Damage.files(in: path, endingIn: ".ldb").first)
    try Damage.flipByte(at: 150_000, of: table)
    try fixture.reopen()
    let engine = try #require(fixture.engine as? LevelDBEngine)
    var suspensions = 0
    let (store, notes, start) = try open(fixture) { _ in
      guard isSuspendedBeforeWrites else { return }
      try engine.suspend()
      try engine.resume()
      suspensions += 1
    }
    start()
    func isCorrupt(_ error: StoreError) -> Bool {
      if case .corrupt("notes", "", _) = error { true } else { false }
    }

    #expect(throwsStoreError(where: isCorrupt) { try store.migrate(notes) })

    #expect((suspensions > 0) == isSuspendedBeforeWrites)
    var left = 0
    for number in 0..<1000 {
      do {
        #expect(try notes.value(for: fixture.key(number)) != nil)
        #expect(try fixture.record(fixture.key(number), in: notes).0.schemaVersion == 3)
      } catch {
        left += 1
      }
    }
    #expect((1..<50).contains(left))
    // The mark did not advance past the unreadable part.
    #expect(throwsStoreError(where: isCorrupt) { try store.migrate(notes) })
  }
}
