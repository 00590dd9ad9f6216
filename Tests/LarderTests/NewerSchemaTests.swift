import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// An older program's save never destroys an entry of a newer one.
@Suite struct NewerSchemaTests {
  /// A store in which version 3 of the program has saved `a`, with the cache opened by version 2.
  private func rolledBack(_ kind: StoreKind) throws -> (Fixture, Cache<String, Note>) {
    let fixture = try Fixture(kind)
    let newer = try open(fixture, version: 3)
    try newer.save(Note(title: "3"), for: "a")
    try fixture.reopen()
    return (fixture, try open(fixture, version: 2))
  }

  private func open(
    _ fixture: Fixture, version: Int, overwritesNewer: Bool = false
  ) throws -> Cache<String, Note> {
    try fixture.store.cache(
      "notes", of: Note.self, schema: Schema(version: version), overwritesNewer: overwritesNewer)
  }

  private func throwsNewerSchema<R>(_ body: () throws -> R) -> Bool {
    throwsStoreError(
      where: { if case .newerSchema(found: 3, known: 2) = $0 { true } else { false } }, body)
  }

  /// Whether version 3, opened again, reads its own value of `a`.
  private func isKept(_ fixture: Fixture) throws -> Bool {
    try fixture.reopen()
    return try open(fixture, version: 3).value(for: "a") == Note(title: "3")
  }

  @Test(
    "A save over a newer program's entry throws and keeps the entry.", arguments: StoreKind.allCases
  )
  func save(kind: StoreKind) throws {
    let (fixture, notes) = try rolledBack(kind)
    defer { fixture.end() }
    #expect(throwsNewerSchema { try notes.save(Note(title: "2"), for: "a") })
    try notes.save(Note(title: "2"), for: "b")
    try notes.save(Note(title: "2 again"), for: "b")
    #expect(try notes.value(for: "b") == Note(title: "2 again"))
    #expect(try isKept(fixture))
  }

  @Test("A batch that saves over a newer entry changes nothing.", arguments: StoreKind.allCases)
  func batch(kind: StoreKind) throws {
    let (fixture, notes) = try rolledBack(kind)
    defer { fixture.end() }
    #expect(
      throwsNewerSchema {
        try fixture.store.write { batch in
          batch.save(Note(title: "2"), for: "b", in: notes)
          batch.save(Note(title: "2"), for: "a", in: notes)
        }
      })
    #expect(try notes.value(for: "b") == nil)
    #expect(try isKept(fixture))
  }

  @Test(
    "A cache opened with overwritesNewer: true may replace a newer entry.",
    arguments: StoreKind.allCases)
  func overwriting(kind: StoreKind) throws {
    let (fixture, notes) = try rolledBack(kind)
    defer { fixture.end() }
    // It is a setting like others.
    #expect(throwsInvalidArgument { try open(fixture, version: 2, overwritesNewer: true) })
    #expect(throwsNewerSchema { try notes.save(Note(title: "2"), for: "a") })
    try fixture.reopen()
    let overwriting = try open(fixture, version: 2, overwritesNewer: true)
    try overwriting.save(Note(title: "2"), for: "a")
    try fixture.store.write { $0.save(Note(title: "2"), for: "b", in: overwriting) }
    #expect(try overwriting.value(for: "a") == Note(title: "2"))
  }

  @Test("The store remembers the newest version although older programs opened the cache since.")
  func remembered() throws {
    let (fixture, _) = try rolledBack(.disk)
    defer { fixture.end() }
    for version in [1, 2, 2, 1] {
      try fixture.reopen()
      let notes = try open(fixture, version: version)
      #expect(
        throwsStoreError(where: {
          if case .newerSchema(found: 3, version) = $0 { true } else { false }
        }) { try notes.save(Note(title: "\(version)"), for: "a") })
      try notes.save(Note(title: "\(version)"), for: "b\(version)")
    }
    #expect(try isKept(fixture))
  }

  @Test(
    "A removed newer entry may be saved again, in the same batch, too.",
    arguments: StoreKind.allCases)
  func removed(kind: StoreKind) throws {
    let (fixture, notes) = try rolledBack(kind)
    defer { fixture.end() }
    try fixture.store.write { batch in
      batch.remove("a", from: notes)
      batch.save(Note(title: "2"), for: "a", in: notes)
    }
    #expect(try notes.value(for: "a") == Note(title: "2"))

    try fixture.reopen()
    try open(fixture, version: 3).save(Note(title: "3"), for: "a")
    try fixture.reopen()
    let again = try open(fixture, version: 2)
    #expect(try again.remove("a"))
    try again.save(Note(title: "2"), for: "a")
    #expect(try again.value(for: "a") == Note(title: "2"))
  }

  @Test("After removeAll no newer entry is left, and saves need no lookup.")
  func cleared() throws {
    let (fixture, _) = try rolledBack(.memory)
    defer { fixture.end() }
    let engine = InterruptedEngine(fixture.engine)
    let store = try Store(engine: engine, origin: .memory)
    let notes = try store.cache("notes", of: Note.self, schema: Schema(version: 2))
    #expect(lookups(engine) { try notes.save(Note(title: "2"), for: "b") } == 1)
    try store.write { batch in
      batch.save(Note(title: "2"), for: "c", in: notes)
      batch.removeAll(from: notes)
      batch.save(Note(title: "2"), for: "a", in: notes)
    }
    #expect(lookups(engine) { try notes.save(Note(title: "2 again"), for: "a") } == 0)
    #expect(try notes.value(for: "a") == Note(title: "2 again"))
    try fixture.reopen()
    #expect(try registration(fixture).newerSchemaVersion == nil)
  }

  @Test("Saves in a cache never opened with a newer version need no lookup.")
  func noLookup() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    for version in [1, 2, 2, 5] {
      let store = try Store(engine: engine, origin: .memory)
      let notes = try store.cache("notes", of: Note.self, schema: Schema(version: version))
      #expect(lookups(engine) { try notes.save(Note(title: "a"), for: "a") } == 0)
      #expect(
        lookups(engine) { try store.write { $0.save(Note(title: "a"), for: "a", in: notes) } } == 0)
    }
  }

  @Test("An older program may save over a damaged entry, but not over one of a newer format.")
  func unreadable() throws {
    let (fixture, notes) = try rolledBack(.memory)
    defer { fixture.end() }
    var record = try fixture.onlyRecord()
    record.value[40] ^= 1
    try fixture.put(record.value, under: record.key)
    try notes.save(Note(title: "2"), for: "a")
    #expect(try notes.value(for: "a") == Note(title: "2"))

    var batch = WriteBatch()
    batch.put(record.key.span.bytes, stamp: Record.stamp) { buffer in
      buffer.append([2] + [UInt8](repeating: 0, count: 60))
    }
    try fixture.engine.write(&batch, synced: false)
    #expect(
      throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }) {
        try notes.save(Note(title: "2"), for: "a")
      })
  }

  @Test("The error of a save says what can be done.")
  func message() {
    let message = "\(StoreError.newerSchema(found: 3, known: 2))"
    #expect(message.hasSuffix("open the cache with overwritesNewer: true."))
  }

  @Test("A registration without the newest version, as earlier releases wrote it, is read.")
  func olderRegistration() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try open(fixture, version: 3).save(Note(title: "3"), for: "a")
    let before = try registrationText(fixture)
    #expect(!before.contains("newerSchemaVersion"))
    try fixture.reopen()
    let notes = try open(fixture, version: 2)
    #expect(try registrationText(fixture).contains("\"newerSchemaVersion\":3"))
    #expect(throwsNewerSchema { try notes.save(Note(title: "2"), for: "a") })
    try fixture.reopen()
    _ = try open(fixture, version: 3)
    #expect(try registrationText(fixture) == before)
  }

  @Test("Newer entries stay while threads of the older program save, remove and touch.")
  func race() throws {
    let (fixture, _) = try rolledBack(.disk)
    defer { fixture.end() }
    try fixture.reopen()
    let newer = try open(fixture, version: 3)
    for key in 0..<20 { try newer.save(Note(title: "3"), for: "new \(key)") }
    try fixture.reopen()
    let notes = try open(fixture, version: 2)
    let store = fixture.store
    let saved = Mutex(0)
    let failures = Mutex<[String]>([])
    onThreads(4) { thread in
      var random = SplitMix64(seed: UInt64(thread))
      for round in 0..<300 {
        let key = Int.random(in: 0..<20, using: &random)
        let name = Bool.random(using: &random) ? "new \(key)" : "old \(key)"
        do {
          switch round % 3 {
          case 0: try notes.save(Note(title: "2"), for: name)
          case 1: try store.write { $0.save(Note(title: "2"), for: name, in: notes) }
          default: try notes.touch(name)
          }
          if name.hasPrefix("new") { saved.withLock { $0 += 1 } }
          if round % 10 == 0 { try notes.remove("old \(key)") }
        } catch StoreError.newerSchema where name.hasPrefix("new") {
        } catch {
          failures.withLock { $0.append("\(name): \(error)") }
        }
      }
    }
    #expect(saved.withLock { $0 } == 0)
    #expect(failures.withLock { $0 } == [])
    try fixture.reopen()
    let again = try open(fixture, version: 3)
    for key in 0..<20 { #expect(try again.value(for: "new \(key)") == Note(title: "3")) }
  }

  private func registration(_ fixture: Fixture) throws -> Registration {
    try JSONDecoder().decode(Registration.self, from: Data(registrationText(fixture).utf8))
  }

  private func registrationText(_ fixture: Fixture) throws -> String {
    let key = Metadata.cache("notes")
    let value = try #require(try fixture.engine.get(key.span.bytes))
    return String(decoding: try #require(Metadata.body(of: value, under: key)), as: UTF8.self)
  }

  /// How many lookups `body` makes.
  private func lookups(_ engine: InterruptedEngine, _ body: () throws -> Void) -> Int {
    let before = engine.lookupCount
    #expect(throws: Never.self) { try body() }
    return engine.lookupCount - before
  }
}
