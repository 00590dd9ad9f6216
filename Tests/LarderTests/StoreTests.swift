import AcceptanceRows
import Foundation
import LarderTesting
import LarderTestSupport
import Testing

@testable import Larder

struct Note: Codable, Hashable, Sendable {
  var title: String
  var body: String?
}

/// Saving, reading and removing keep their contract, on disk and in memory.
@Suite(.acceptance) struct StoreTests {
  @Test("An empty cache returns nothing, twice.", arguments: StoreKind.allCases)
  func empty(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)

    for _ in 0..<2 {
      #expect(try notes.value(for: "a") == nil)
      #expect(try notes.lookup(for: "a").kind == "missing")
    }
  }

  @Test("Values are read with the exact date of their save, twice.", arguments: StoreKind.allCases)
  func exactDates(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: [Note].self, lifetime: .unlimited)
    let list = [
      Note(title: "b", body: nil), Note(title: "a", body: ""), Note(title: "b", body: "\u{E9}"),
    ]
    var random = SplitMix64(seed: 1)

    for _ in 0..<1000 {
      let date = Date(timeIntervalSinceReferenceDate: .random(in: -1e10...1e10, using: &random))
      fixture.clock.set(date)
      try notes.save(list, for: "all")
      for origin in [kind.isOnDisk ? Origin.disk : .memory, .memory] {
        let entry = try #require(try notes.entry(for: "all"))
        #expect(entry.value == list)
        #expect(
          entry.savedAt.timeIntervalSinceReferenceDate.bitPattern
            == date.timeIntervalSinceReferenceDate.bitPattern)
        #expect(entry.origin == origin)
      }
    }
  }

  @Test(
    "A save succeeds in an empty cache and over an entry, which it replaces.",
    arguments: StoreKind.allCases)
  func saves(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: [Note].self)

    try notes.save([Note(title: "old"), Note(title: "older")], for: "all")
    try notes.save([Note(title: "new")], for: "all")

    #expect(try notes.value(for: "all") == [Note(title: "new")])
  }

  @Test(
    "Removing succeeds and returns whether there was an entry; afterwards there is none.",
    arguments: StoreKind.allCases)
  func removes(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)

    #expect(try notes.remove("a") == false)
    #expect(try notes.lookup(for: "a").kind == "missing")
    try notes.save(Note(title: "a"), for: "a")
    #expect(try notes.remove("a") == true)
    #expect(try notes.remove("a") == false)
    #expect(try notes.lookup(for: "a").kind == "missing")
  }

  @Test("Bytes that do not decode are an error twice, and are kept.", arguments: StoreKind.allCases)
  func undecodable(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("notes", of: [Int].self).save([1, 2], for: "a")
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self)

    for _ in 0..<2 {
      #expect(throwsUndecodable("a") { try notes.value(for: "a") })
    }
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test("Saved values are there after reopening.", arguments: StoreKind.allCases)
  func reopened(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("notes", of: Note.self).save(Note(title: "x"), for: "a")

    try fixture.reopen()

    #expect(
      try fixture.store.cache("notes", of: Note.self).value(for: "a") == Note(title: "x"))
  }

  @Test(
    "Nil stays nil and empty stays empty.", arguments: StoreKind.allCases,
    ["binary", "json", "propertyList"])
  func optionals(kind: StoreKind, coder: String) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let coders: [String: Coder<Note>] = [
      "binary": .binary, "json": .json, "propertyList": .propertyList,
    ]
    let notes = try fixture.store.cache(
      "notes", of: Note.self, coder: try #require(coders[coder]))
    for note in [
      Note(title: "", body: nil), Note(title: "", body: ""), Note(title: "t", body: "b"),
    ] {
      try notes.save(note, for: "n")
      #expect(try notes.value(for: "n") == note)
    }
  }

  @Test("Clearing one cache does not affect another.", arguments: StoreKind.allCases)
  func twoCaches(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let one = try store.cache("one", of: Note.self)
    let two = try store.cache("two", of: Note.self)
    try one.save(Note(title: "1"), for: "k")
    try two.save(Note(title: "2"), for: "k")

    try one.removeAll()

    #expect(try one.value(for: "k") == nil)
    #expect(try two.value(for: "k") == Note(title: "2"))
  }

  @Test(
    "An entry of a newer schema is an error, and validate keeps it.", arguments: StoreKind.allCases)
  func newerSchema(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 3))
      .save(Note(title: "3"), for: "a")
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: Schema(version: 2))

    #expect(
      throwsStoreError(where: {
        if case .newerSchema(found: 3, known: 2) = $0 { true } else { false }
      }) {
        try notes.value(for: "a")
      })
    fixture.clock.advance(by: .seconds(30 * 86_400))
    let report = try notes.validate()
    #expect(report.newer == 1)
    #expect(report.kept == 1)
    #expect(report.expired + report.unreadable == 0)
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test(
    "An entry is fresh, then stale, then expired, to the second.", arguments: StoreKind.allCases)
  func states(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache(
      "notes", of: Note.self, lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)),
      coder: .json)
    let saved = fixture.clock.now()
    try notes.save(Note(title: "x"), for: "a")

    let day = 86_400.0
    for (age, expected) in [
      (0, "fresh"), (7 * day - 1, "fresh"), (7 * day, "stale"), (30 * day - 1, "stale"),
      (30 * day, "expired"), (30 * day + 1, "expired"), (-1, "fresh"),
    ] {
      fixture.clock.set(saved + age)
      let found = try notes.lookup(for: "a")
      #expect(found.kind == expected, "at \(age) s")
      #expect((try notes.value(for: "a") != nil) == (expected == "fresh"), "at \(age) s")
      if case .expired(let metadata) = found {
        #expect(metadata.savedAt == saved)
        #expect(metadata.age == .seconds(age))
        #expect(metadata.payloadBytes == #"{"title":"x"}"#.utf8.count)
      }
      if case .stale(let entry) = found { #expect(entry.age == .seconds(age)) }
    }
  }

  @Test("A maximum age at the call shortens an unlimited lifetime.", arguments: StoreKind.allCases)
  func maximumAge(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self, lifetime: .unlimited)
    try notes.save(Note(title: "x"), for: "a")
    fixture.clock.advance(by: .seconds(100))

    #expect(try notes.lookup(for: "a", maxAge: .seconds(100)).kind == "expired")
    #expect(try notes.lookup(for: "a", maxAge: .seconds(101)).kind == "fresh")
    #expect(try notes.lookup(for: "a").kind == "fresh")
  }

  @Test("A read reads the clock once, and only if there is an entry.")
  func clockReadings() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let before = fixture.clock.readings

    _ = try notes.value(for: "a")
    #expect(fixture.clock.readings == before)

    try notes.save(Note(title: "x"), for: "a")
    #expect(fixture.clock.readings == before + 1)
    _ = try notes.value(for: "a")
    #expect(fixture.clock.readings == before + 2)
  }

  @Test("Reading changes no row.", arguments: StoreKind.allCases)
  func readsOnly(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    for number in 0..<20 { try notes.save(Note(title: "\(number)"), for: "\(number)") }
    let rows = try KeySpace.allCases.map { try fixture.rows(in: $0).map { [$0.key, $0.value] } }

    for day in [0, 6, 8] {
      fixture.clock.advance(by: .seconds(Double(day) * 86_400))
      for number in 0..<20 { _ = try notes.lookup(for: "\(number)") }
      let cursor = try notes.entries()
      while try cursor.next() != nil {}
      let keys = try notes.keys()
      while try keys.next() != nil {}
    }

    let after = try KeySpace.allCases.map { try fixture.rows(in: $0).map { [$0.key, $0.value] } }
    #expect(after == rows)
  }
}

// MARK: - What is thrown

/// Whether `body` throws a `StoreError` that `matches`.
func throwsStoreError<R>(
  where matches: (StoreError) -> Bool, _ body: () throws -> R
) -> Bool {
  do {
    _ = try body()
    return false
  } catch let error as StoreError {
    return matches(error)
  } catch {
    return false
  }
}

func throwsUndecodable<R>(_ key: String, _ body: () throws -> R) -> Bool {
  throwsStoreError(where: { if case .undecodable(key, _) = $0 { true } else { false } }, body)
}

func throwsInvalidArgument<R>(_ body: () throws -> R) -> Bool {
  throwsStoreError(where: { if case .invalidArgument = $0 { true } else { false } }, body)
}

func throwsClosed<R>(_ body: () throws -> R) -> Bool {
  throwsStoreError(where: { if case .closed = $0 { true } else { false } }, body)
}
