import Foundation
import LarderTesting
import Testing

@testable import Larder

/// A cache's settings are checked when it is opened, and remembered by the store.
@Suite struct SettingsTests {
  @Test("Opening a cache again returns the same cache, or refuses other settings.")
  func openedTwice() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let store = fixture.store
    let notes = try store.cache("notes", of: Note.self)
    let again = try store.cache("notes", of: Note.self)
    #expect(notes.core === again.core)

    #expect(throwsInvalidArgument { try store.cache("notes", of: Int.self) })
    #expect(throwsInvalidArgument { try store.cache("notes", of: Note.self, keyedBy: Int.self) })
    #expect(throwsInvalidArgument { try store.cache("notes", of: Note.self, keyedBy: URL.self) })
    #expect(throwsInvalidArgument { try store.cache("notes", of: Note.self, lifetime: .days(8)) })
    #expect(
      throwsInvalidArgument { try store.cache("notes", of: Note.self, schema: Schema(version: 2)) })
    #expect(throwsInvalidArgument { try store.cache("notes", of: Note.self, coder: .propertyList) })
  }

  @Test("A cache keeps the kind of its keys across openings.", arguments: StoreKind.allCases)
  func keyKind(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("notes", of: Note.self, keyedBy: Int.self).save(
      Note(title: "t"), for: 1)
    try fixture.reopen()

    #expect(throwsInvalidArgument { try fixture.store.cache("notes", of: Note.self) })
    let notes = try fixture.store.cache("notes", of: Note.self, keyedBy: Int.self)
    #expect(try notes.value(for: 1) == Note(title: "t"))
  }

  @Test("A name has 1 to 255 bytes, and may hold any character.")
  func names() throws {
    let store = Store.inMemory()
    #expect(throwsInvalidArgument { try store.cache("", of: Int.self) })
    #expect(
      throwsInvalidArgument { try store.cache(String(repeating: "x", count: 256), of: Int.self) })
    _ = try store.cache(String(repeating: "x", count: 255), of: Int.self)
    _ = try store.cache("cache/\0 \u{E9}", of: Int.self)
  }

  @Test("The store remembers the settings of the last opening.", arguments: StoreKind.allCases)
  func remembered(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    _ = try fixture.store.cache(
      "notes", of: Note.self, keyedBy: UUID.self,
      lifetime: .fresh(for: .days(2), thenStaleFor: .seconds(5)), schema: Schema(version: 4),
      coder: .propertyList)
    let first = try registration(fixture)
    #expect(first.keyKind == KeyKind.uuid.code)
    #expect(first.lifetime == .fresh(for: .days(2), thenStaleFor: .seconds(5)))
    #expect(first.schemaVersion == 4)
    #expect(first.coder == 3)

    try fixture.reopen()
    _ = try fixture.store.cache("notes", of: Note.self, keyedBy: UUID.self, lifetime: .unlimited)
    let second = try registration(fixture)
    #expect(second.id == first.id)
    #expect(second.lifetime == .unlimited)
    #expect(second.schemaVersion == 1)
    #expect(second.coder == 1)
  }

  @Test("Opening a known cache with the same settings writes nothing.")
  func reopening() throws {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(identifier: "America/New_York"))
    for lifetime in [Lifetime.days(7), .days(7, calendar: calendar), .unlimited] {
      let fixture = try Fixture(.memory)
      defer { fixture.end() }
      _ = try fixture.store.cache("notes", of: Note.self, lifetime: lifetime)
      let engine = InterruptedEngine(fixture.engine)
      engine.beforeNextWrite = { Issue.record("a write") }
      let again = try Store(engine: engine, origin: .memory)
      _ = try again.cache("notes", of: Note.self, lifetime: lifetime)
    }
  }

  @Test("A record is decoded by the coder that wrote it.", arguments: StoreKind.allCases)
  func ownCoder(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let coders: [Coder<Data>] = [.json, .propertyList, .bytes, .binary]
    for (number, coder) in coders.enumerated() {
      let cache = try fixture.store.cache("data", of: Data.self, keyedBy: Int.self, coder: coder)
      try cache.save(Data([UInt8(number), 0, 255]), for: number)
      try fixture.reopen()
    }
    for coder in coders {
      let cache = try fixture.store.cache("data", of: Data.self, keyedBy: Int.self, coder: coder)
      for number in coders.indices {
        #expect(try cache.value(for: number) == Data([UInt8(number), 0, 255]))
      }
      try fixture.reopen()
    }
  }

  @Test("The bytes coder stores bytes unchanged.")
  func bytes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    try data.save(Data([1, 2, 3]), for: "k")
    #expect(try fixture.onlyRecord().value.suffix(3) == [1, 2, 3])

    let arrays = try fixture.store.cache("arrays", of: [UInt8].self, coder: .bytes)
    try arrays.save([4, 5], for: "k")
    #expect(try arrays.value(for: "k") == [4, 5])
  }

  @Test("Raw bytes in a cache of another type are undecodable.")
  func rawBytes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.store.cache("data", of: Data.self, coder: .bytes).save(Data([1]), for: "k")
    try fixture.reopen()
    let notes = try fixture.store.cache("data", of: Note.self)
    #expect(throwsUndecodable("k") { try notes.value(for: "k") })
  }

  @Test(
    "Older schemas are read by their readers, and left as they are.", arguments: StoreKind.allCases)
  func olderSchemas(kind: StoreKind) throws {
    struct NoteV1: Codable, Sendable { var name: String }
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("notes", of: NoteV1.self, coder: .propertyList)
      .save(NoteV1(name: "one"), for: "1")
    try fixture.reopen()
    try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 2))
      .save(Note(title: "two"), for: "2")
    try fixture.reopen()
    let schema = Schema<Note>(version: 3)
      .reading(1, as: NoteV1.self) { Note(title: $0.name, body: "upgraded") }
      .reading(2, as: Note.self) { _ in throw CancellationError() }
    let notes = try fixture.store.cache("notes", of: Note.self, schema: schema)
    let before = try fixture.rows(in: .records).map(\.value)

    #expect(try notes.value(for: "1") == Note(title: "one", body: "upgraded"))
    #expect(
      throwsStoreError(where: {
        if case .undecodable("2", let error) = $0 { error is CancellationError } else { false }
      }) { try notes.value(for: "2") })
    #expect(try fixture.rows(in: .records).map(\.value) == before)

    try fixture.reopen()
    let unread = try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 3))
    #expect(throwsUndecodable("1") { try unread.value(for: "1") })
  }

  @Test("Schema versions out of range trap.")
  func invalidSchemas() async {
    await #expect(processExitsWith: .failure) { _ = Schema<Int>(version: -1) }
    await #expect(processExitsWith: .failure) { _ = Schema<Int>(version: 1 << 32) }
    await #expect(processExitsWith: .failure) {
      _ = Schema<Int>(version: 1).reading(1, as: Int.self) { $0 }
    }
    _ = Schema<Int>(version: Int(UInt32.max))
  }

  private func registration(_ fixture: Fixture) throws -> Registration {
    let key = Metadata.cache("notes")
    let row = try #require(try fixture.rows(in: .metadata).first { $0.key == key })
    let body = try #require(Metadata.body(of: row.value, under: key))
    return try JSONDecoder().decode(Registration.self, from: Data(body))
  }
}
