import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Entries with a lifetime of their own, in place of the cache's.
///
/// ``ModelTests`` mixes them with all other operations.
@Suite struct OwnLifetimeTests {
  @Test(
    "An entry's own lifetime replaces the cache's, also after the cache has got another one.",
    arguments: StoreKind.allCases)
  func replaces(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let own = Lifetime.fresh(for: .seconds(10), thenStaleFor: .seconds(20))
    let numbers = try fixture.store.cache("n", of: Int.self, lifetime: .days(7))
    try numbers.save(1, for: "own", lifetime: own)
    try numbers.save(2, for: "endless", lifetime: .unlimited)
    try numbers.save(3, for: "plain")
    let savedAt = fixture.clock.now()
    for lifetime in [Lifetime.days(7), .seconds(1), .unlimited] {
      fixture.clock.set(savedAt)
      try fixture.reopen()
      let numbers = try fixture.store.cache("n", of: Int.self, lifetime: lifetime)
      for (age, state) in [(9.0, "fresh"), (10, "stale"), (29, "stale"), (30, "expired")] {
        fixture.clock.set(savedAt + age)
        #expect(try numbers.lookup(for: "own").kind == state, "\(lifetime) \(age)")
      }
      fixture.clock.set(savedAt + 1e9)
      #expect(try numbers.entry(for: "endless")?.lifetime == .unlimited, "\(lifetime)")
      #expect((try numbers.value(for: "plain") == nil) == (lifetime != .unlimited))
    }
  }

  @Test(
    "An entry's expiry date is the first date at which a lookup finds it expired.",
    arguments: StoreKind.allCases)
  func expiryDate(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let lifetime = Lifetime.fresh(for: .seconds(10), thenStaleFor: .seconds(5))
    let savedAt = fixture.clock.now()
    var numbers = try fixture.store.cache("n", of: Int.self, lifetime: lifetime)
    try numbers.save(1, for: "plain")
    try numbers.save(2, for: "own", lifetime: .fresh(for: .days(1, calendar: .current)))
    try numbers.save(3, for: "endless", lifetime: .unlimited)
    for _ in 0..<2 {
      let endless = try #require(try numbers.entry(for: "endless"))
      #expect(numbers.expiryDate(of: endless) == nil)
      for key in ["plain", "own"] {
        let entry = try #require(try numbers.entry(for: key))
        let end = try #require(numbers.expiryDate(of: entry))
        fixture.clock.set(end - 0.001)
        #expect(try numbers.lookup(for: key).kind != "expired", "\(key)")
        fixture.clock.set(end)
        #expect(try numbers.lookup(for: key).kind == "expired", "\(key)")
        fixture.clock.set(savedAt)
      }
      try fixture.reopen()
      numbers = try fixture.store.cache("n", of: Int.self, lifetime: lifetime)
    }
    #expect(try numbers.touch("plain", lifetime: .hours(1)))
    let touched = try #require(try numbers.entry(for: "plain"))
    #expect(numbers.expiryDate(of: touched) == savedAt + 3600)
  }

  @Test(
    "A sweep deletes entries by their own lifetimes, and keeps the others.",
    arguments: StoreKind.allCases, [Lifetime.days(7), .unlimited, .seconds(1)])
  func sweep(kind: StoreKind, lifetime: Lifetime) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var numbers = try fixture.store.cache("n", of: Int.self, lifetime: lifetime)
    try numbers.save(1, for: "short", lifetime: .minutes(1))
    try numbers.save(2, for: "long", lifetime: .hours(10))
    try numbers.save(3, for: "endless", lifetime: .unlimited)
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(62))
    // The cache is not open: its registration must tell.
    #expect(try fixture.store.sweep() == 1)
    numbers = try fixture.store.cache("n", of: Int.self, lifetime: lifetime)
    #expect(try numbers.lookup(for: "short").kind == "missing")
    #expect(try numbers.value(for: "long") == 2)
    fixture.clock.advance(by: .seconds(11 * 3600))
    #expect(try fixture.store.contents()["n"]?.due.entries == 1)
    #expect(try fixture.store.sweep() == 1)
    #expect(try numbers.lookup(for: "long").kind == "missing")
    fixture.clock.advance(by: .seconds(1e9))
    #expect(try fixture.store.sweep() == 0)
    #expect(try numbers.value(for: "endless") == 3)
  }

  @Test("A touch restarts an own lifetime, or sets another one.", arguments: StoreKind.allCases)
  func touch(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var numbers = try fixture.store.cache("n", of: Int.self)
    try numbers.save(1, for: "a", lifetime: .seconds(10), validator: "v", tags: ["t"])
    fixture.clock.advance(by: .seconds(8))
    #expect(try numbers.touch("a"))
    fixture.clock.advance(by: .seconds(8))
    #expect(try numbers.entry(for: "a")?.lifetime == .seconds(10))
    #expect(try numbers.touch("a", lifetime: .fresh(for: .minutes(2), thenStaleFor: .hours(1))))
    try fixture.reopen()
    numbers = try fixture.store.cache("n", of: Int.self)
    fixture.clock.advance(by: .seconds(119))
    let entry = try #require(try numbers.entry(for: "a"))
    #expect(entry.lifetime == .fresh(for: .minutes(2), thenStaleFor: .hours(1)))
    #expect(entry.validator == "v" && entry.tags == ["t"])
    fixture.clock.advance(by: .seconds(1))
    #expect(try numbers.lookup(for: "a").kind == "stale")
    fixture.clock.advance(by: .seconds(3700))
    #expect(try fixture.store.sweep() == 1)
    try numbers.save(2, for: "a")
    #expect(try numbers.entry(for: "a")?.lifetime == nil)
  }

  @Test("Days of a calendar are stored as the seconds that they have.")
  func calendar() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(identifier: "Europe/Berlin"))
    // The day before the clocks are set forward: 23 hours.
    let day = DateComponents(calendar: calendar, year: 2026, month: 3, day: 28, hour: 12)
    fixture.clock.set(try #require(day.date))
    let numbers = try fixture.store.cache("n", of: Int.self)
    try numbers.save(1, for: "a", lifetime: .days(1, calendar: calendar))
    #expect(try numbers.entry(for: "a")?.lifetime == .hours(23))
    fixture.clock.advance(by: .seconds(23 * 3600))
    #expect(try numbers.value(for: "a") == nil)
  }

  @Test("Migration, backup and salvage keep own lifetimes, tags and validators.")
  func kept() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let old = try fixture.store.cache("notes", of: NoteV1.self)
    try old.save(
      NoteV1(name: "a"), for: "k", lifetime: .seconds(90), validator: "v", tags: ["x", "y"])
    try old.save(NoteV1(name: "b"), for: "ended", tags: ["z"])
    try fixture.store.invalidate(tag: "z")
    try fixture.reopen()
    let notes = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    #expect(try fixture.store.migrate(notes).migrated == 1)
    func expectKept(in store: Store, sourceLocation: SourceLocation = #_sourceLocation) throws {
      let notes = try store.cache("notes", of: Note.self, schema: .reading1And2)
      let entry = try #require(try notes.entry(for: "k"), sourceLocation: sourceLocation)
      #expect(entry.lifetime == .seconds(90), sourceLocation: sourceLocation)
      #expect(entry.tags == ["x", "y"] && entry.validator == "v", sourceLocation: sourceLocation)
      #expect(try notes.value(for: "ended") == nil, sourceLocation: sourceLocation)
      fixture.clock.advance(by: .seconds(100))
      #expect(try store.sweep() == 2, sourceLocation: sourceLocation)
      fixture.clock.set(fixture.clock.now() - 100)
      try store.close()
    }
    let place = try TemporaryDirectory()
    let copies = ["backup", "salvaged"].map { URL(filePath: place.path($0)) }
    try fixture.store.backup(to: copies[0])
    try fixture.store.close()
    #expect(try Store.salvage(from: fixture.directory, to: copies[1]).isComplete)
    var options = Store.Options()
    options.clock = fixture.clock
    let restored = URL(filePath: place.path("restored"))
    try Store.restore(from: copies[0], to: restored)
    for directory in [restored, copies[1], fixture.directory] {
      try expectKept(in: Store(at: directory, options: options))
    }
  }

  @Test(
    "A budget evicts entries that never expire, which have no note.",
    arguments: StoreKind.allCases)
  func budget(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let data = try fixture.store.cache(
      "data", of: Data.self, lifetime: .unlimited, coder: .bytes, byteBudget: 20_000)
    try data.save(Data(count: 1000), for: "short", lifetime: .minutes(1))
    for number in 0..<10 { try data.save(Data(count: 1000), for: "n\(number)") }
    #expect(try fixture.notes().count == 1)
    fixture.clock.advance(by: .seconds(8 * 86_400))
    #expect(try fixture.store.sweep() == 1)
    #expect(try fixture.rows(in: .notes).isEmpty)
    for number in 10..<40 { try data.save(Data(count: 1000), for: "n\(number)") }
    #expect(try data.value(for: "n39") != nil)
    #expect(try data.count() < 20)
  }

  @Test("A record with all optional fields has the bytes that are documented.")
  func bytes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    try data.save(
      Data([1, 2]), for: "k", lifetime: .fresh(for: .seconds(2), thenStaleFor: .unlimited),
      validator: "v", tags: ["a", "e\u{301}"])
    let saved = try fixture.onlyRecord().value
    #expect(saved[1] == 0b1000_0010 && saved[3] == 1)
    let two: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0x40]
    let infinity: [UInt8] = [0, 0, 0, 0, 0, 0, 0xF0, 0x7F]
    let tags: [UInt8] = [2, 1, 0x61, 2, 0xC3, 0xA9]
    #expect(Array(saved[36...]) == two + infinity + [1, 0x76] + tags + [1, 2])
    #expect(try data.touch("k"))
    let touched = try fixture.onlyRecord().value
    #expect(touched[1] == saved[1] && touched[3] == 3)
    let original = Array(saved[24..<32])
    #expect(
      Array(touched[36...]) == two + infinity + original + [1, 0x76] + tags + [1, 2])
  }
}
