import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Scans return fresh entries in the order of their keys' bytes, and do not end at damage.
@Suite struct ScanTests {
  @Test("Scans follow the order of bytes, within their range.", arguments: StoreKind.allCases)
  func order(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let other = try fixture.store.cache("other", of: Int.self, keyedBy: Int.self)
    let keys = [5, -3, 0, .max, .min, 256, 255, -256]
    for key in keys {
      try numbers.save(key, for: key)
      try other.save(0, for: key)
    }

    #expect(try all(numbers.keys()) == keys.sorted())
    #expect(try all(numbers.keys(in: .from(0))) == [0, 5, 255, 256, .max])
    #expect(try all(numbers.keys(in: .upTo(0))) == [.min, -256, -3])
    #expect(try all(numbers.keys(in: .from(-3, upTo: 255))) == [-3, 0, 5])
    #expect(try all(numbers.keys(in: .from(255, upTo: -3))) == [])
    #expect(try values(numbers.entries(in: .from(5, upTo: 256))) == [5, 255])
  }

  @Test("A prefix selects keys by their bytes.", arguments: StoreKind.allCases)
  func prefixes(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let texts = try fixture.store.cache("texts", of: Int.self)
    for key in ["", "a", "ab", "abc", "ac", "b", "\u{10FFFF}"] { try texts.save(0, for: key) }
    #expect(try all(texts.keys(in: .prefix("ab"))) == ["ab", "abc"])
    #expect(try all(texts.keys(in: .prefix(""))).count == 7)
    #expect(try all(texts.keys(in: .prefix("x"))) == [])

    let raw = try fixture.store.cache("raw", of: Int.self, keyedBy: [UInt8].self)
    for key in [[], [0], [255], [255, 255], [255, 255, 0], [255, 254]] as [[UInt8]] {
      try raw.save(0, for: key)
    }
    #expect(try all(raw.keys(in: .prefix([255, 255]))) == [[255, 255], [255, 255, 0]])
    #expect(try all(raw.keys(in: .prefix([0]))) == [[0]])
  }

  @Test("Scans skip stale and expired entries.", arguments: StoreKind.allCases)
  func freshOnly(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache(
      "notes", of: Int.self, lifetime: .fresh(for: .seconds(10), thenStaleFor: .seconds(10)))
    try notes.save(1, for: "expired")
    fixture.clock.advance(by: 12)
    try notes.save(2, for: "stale")
    fixture.clock.advance(by: 11)
    try notes.save(3, for: "fresh")

    #expect(try all(notes.keys()) == ["fresh"])
    #expect(try values(notes.entries()) == [3])
  }

  @Test(
    "A damaged entry is one failed item of a scan, which continues.", arguments: StoreKind.allCases)
  func damaged(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    for number in 1...5 { try numbers.save(number, for: number) }
    let third = try fixture.rows(in: .records)[2]
    try fixture.put(Array(third.value.dropLast()), under: third.key)

    var damaged: [Int] = []
    var read: [Int] = []
    let cursor = try numbers.entries()
    while let item = try cursor.next() {
      switch item.entry {
      case .success(let entry): read.append(entry.value)
      case .failure(.corrupt("numbers", "3", _)): damaged.append(item.key)
      case .failure(let error): Issue.record(error)
      }
    }

    #expect(damaged == [3])
    #expect(read == [1, 2, 4, 5])
    #expect(try all(numbers.keys()) == [1, 2, 3, 4, 5])
  }

  @Test(
    "A stored key that is not a key of the type is thrown, and the scan continues.",
    arguments: StoreKind.allCases)
  func otherKeys(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let texts = try fixture.store.cache("letters", of: Int.self)
    for key in ["a", "b", "z"] { try texts.save(0, for: key) }
    try texts.save(0, for: "aa")
    try fixture.reopen()
    let letters = try fixture.store.cache("letters", of: Int.self, keyedBy: Letter.self)

    let cursor = try letters.keys()
    #expect(try cursor.next() == .a)
    #expect(throwsUndecodable("aa") { try cursor.next() })
    #expect(try cursor.next() == .b)
    #expect(throwsUndecodable("z") { try cursor.next() })
    #expect(try cursor.next() == nil)
  }

  @Test("A closed store ends its cursors with closed.", arguments: StoreKind.allCases)
  func closed(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    for number in 1...5 { try numbers.save(number, for: number) }
    let cursor = try numbers.entries()
    #expect(try cursor.next()?.key == 1)

    try fixture.store.close()

    #expect(throwsClosed { try cursor.next() })
    #expect(throwsClosed { try numbers.value(for: 1) })
    #expect(throwsClosed { try numbers.save(1, for: 1) })
    #expect(throwsClosed { try numbers.remove(1) })
    #expect(throwsClosed { try numbers.removeAll() })
    #expect(throwsClosed { try numbers.touch(1) })
    #expect(throwsClosed { try numbers.validate() })
    #expect(throwsClosed { try numbers.keys() })
    #expect(throwsClosed { try fixture.store.cache("other", of: Int.self) })
    try fixture.store.close()
  }

  private func all<Key>(_ cursor: KeyCursor<Key>) throws -> [Key] {
    var keys: [Key] = []
    while let key = try cursor.next() { keys.append(key) }
    return keys
  }

  private func values<Key, Value>(_ cursor: EntryCursor<Key, Value>) throws -> [Value] {
    var values: [Value] = []
    while let item = try cursor.next() { values.append(try item.entry.get().value) }
    return values
  }
}
