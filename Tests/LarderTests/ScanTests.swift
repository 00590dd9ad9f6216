import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Scans return entries in the order of their keys' bytes, and do not end at damage.
///
/// ``ScanModelTests`` compares random scans with a model.
@Suite struct ScanTests {
  static let orders = [ScanOrder.ascending, .descending]

  @Test(
    "Scans follow the order of bytes, within their range.", arguments: StoreKind.allCases, orders)
  func order(kind: StoreKind, order: ScanOrder) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let other = try fixture.store.cache("other", of: Int.self, keyedBy: Int.self)
    let keys = [5, -3, 0, .max, .min, 256, 255, -256]
    for key in keys {
      try numbers.save(key, for: key)
      try other.save(0, for: key)
    }

    func expect(_ range: KeyRange<Int>, _ sorted: [Int]) throws {
      let expected = order == .ascending ? sorted : sorted.reversed()
      #expect(try all(numbers.keys(in: range, order: order)) == expected)
      #expect(try values(numbers.entries(in: range, order: order)) == expected)
      let lookups = try numbers.lookups(in: range, states: .fresh, order: order)
      #expect(try all(lookups).map(\.key) == expected)
    }
    try expect(.all, keys.sorted())
    try expect(.from(0), [0, 5, 255, 256, .max])
    try expect(.upTo(0), [.min, -256, -3])
    try expect(.from(-3, upTo: 255), [-3, 0, 5])
    try expect(.from(255, upTo: -3), [])
    #expect(try all(numbers.keys()) == keys.sorted())
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

  @Test(
    "Keys and entries are the fresh ones; lookups are those in the given states.",
    arguments: StoreKind.allCases, orders)
  func states(kind: StoreKind, order: ScanOrder) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache(
      "notes", of: Int.self, lifetime: .fresh(for: .seconds(10), thenStaleFor: .seconds(10)))
    try notes.save(1, for: "1 expired", validator: "v1")
    fixture.clock.advance(by: .seconds(12))
    try notes.save(2, for: "2 stale")
    fixture.clock.advance(by: .seconds(11))
    try notes.save(3, for: "3 fresh")

    #expect(try all(notes.keys(order: order)) == ["3 fresh"])
    #expect(try values(notes.entries(order: order)) == [3])
    for bits in UInt8(0)..<8 {
      let states = EntryStates(rawValue: bits)
      let expected = [
        states.contains(.expired) ? ["1 expired"] : [], states.contains(.stale) ? ["2 stale"] : [],
        states.contains(.fresh) ? ["3 fresh"] : [],
      ].flatMap(\.self)
      let found = try all(notes.lookups(states: states, order: order))
      #expect(found.map(\.key) == (order == .ascending ? expected : expected.reversed()))
      for item in found { #expect(try item.found.get().kind == item.key.dropFirst(2)) }
    }
    let expired = try #require(try notes.lookups(states: .expired, order: order).next())
    guard case .success(.expired(let metadata)) = expired.found else {
      Issue.record("\(expired.found)")
      return
    }
    #expect(metadata.age == .seconds(23) && metadata.validator == "v1")
  }

  @Test(
    "A damaged entry is one failed item of a scan, which continues.",
    arguments: StoreKind.allCases, orders)
  func damaged(kind: StoreKind, order: ScanOrder) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    for number in 1...5 { try numbers.save(number, for: number) }
    let third = try fixture.rows(in: .records)[2]
    try fixture.put(Array(third.value.dropLast()), under: third.key)

    var damaged: [Int] = []
    var read: [Int] = []
    let cursor = try numbers.entries(order: order)
    while let item = try cursor.next() {
      switch item.entry {
      case .success(let entry): read.append(entry.value)
      case .failure(.corrupt("numbers", "3", _)): damaged.append(item.key)
      case .failure(let error): Issue.record(error)
      }
    }

    #expect(damaged == [3])
    #expect(read == (order == .ascending ? [1, 2, 4, 5] : [5, 4, 2, 1]))
    #expect(try all(numbers.keys(order: order)).sorted() == [1, 2, 3, 4, 5])
  }

  @Test(
    "Lookups return every entry of unknown state, and undecodable ones of the given states.",
    arguments: orders)
  func unreadable(order: ScanOrder) throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache(
      "notes", of: Int.self, lifetime: .fresh(for: .seconds(10), thenStaleFor: .seconds(10)))
    for key in ["a stale", "b stale, undecodable"] { try notes.save(1, for: key) }
    fixture.clock.advance(by: .seconds(12))
    for key in ["c fresh", "d fresh, undecodable", "e damaged", "f newer"] {
      try notes.save(1, for: key)
    }
    let rows = try fixture.rows(in: .records)
    for row in [1, 3] { try rewrite(rows[row], in: fixture) { $0.removeLast() } }
    try fixture.put(Array(rows[4].value.dropLast()), under: rows[4].key)
    try rewrite(rows[5], in: fixture) { $0[4] = 2 }

    func failures(_ states: EntryStates) throws -> [String] {
      let items = try all(notes.lookups(states: states, order: order))
      return items.compactMap { item -> String? in
        switch item.found {
        case .success: nil
        case .failure(.undecodable): "\(item.key.prefix(1)) undecodable"
        case .failure(.corrupt): "\(item.key.prefix(1)) damaged"
        case .failure(.newerSchema): "\(item.key.prefix(1)) newer"
        case .failure(let error): "\(item.key): \(error)"
        }
      }.sorted()
    }
    #expect(try failures([]) == ["e damaged", "f newer"])
    #expect(try failures(.expired) == ["e damaged", "f newer"])
    #expect(try failures(.fresh) == ["d undecodable", "e damaged", "f newer"])
    #expect(try failures(.stale) == ["b undecodable", "e damaged", "f newer"])
    // An expired value is not decoded.
    fixture.clock.advance(by: .seconds(100))
    let expired = try all(notes.lookups(states: .expired, order: order))
    let kinds = expired.map { item -> String in
      if case .success(let found) = item.found { found.kind } else { "failed" }
    }
    #expect(kinds.sorted() == Array(repeating: "expired", count: 4) + ["failed", "failed"])
    #expect(try all(notes.keys(order: order)).sorted() == ["e damaged", "f newer"])
  }

  @Test(
    "A stored key that is not a key of the type is thrown, and the scan continues.",
    arguments: StoreKind.allCases, orders)
  func otherKeys(kind: StoreKind, order: ScanOrder) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let texts = try fixture.store.cache("letters", of: Int.self)
    for key in ["a", "b", "z"] { try texts.save(0, for: key) }
    try texts.save(0, for: "aa")
    try fixture.reopen()
    let letters = try fixture.store.cache("letters", of: Int.self, keyedBy: Letter.self)

    let cursor = try letters.keys(order: order)
    var found: [String] = []
    for _ in 0..<4 {
      do {
        found.append(try cursor.next()?.rawValue ?? "the end")
      } catch StoreError.undecodable(let key, _) {
        found.append("not \(key)")
      }
    }
    let sorted = ["a", "not aa", "b", "not z"]
    #expect(found == (order == .ascending ? sorted : sorted.reversed()))
    #expect(try cursor.next() == nil)
    #expect(try cursor.next() == nil)
  }

  @Test("A closed store ends its cursors with closed.", arguments: StoreKind.allCases, orders)
  func closed(kind: StoreKind, order: ScanOrder) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    for number in 1...5 { try numbers.save(number, for: number) }
    let cursor = try numbers.entries(order: order)
    #expect(try cursor.next()?.key == (order == .ascending ? 1 : 5))

    try fixture.store.close()

    #expect(throwsClosed { try cursor.next() })
    #expect(throwsClosed { try numbers.value(for: 1) })
    #expect(throwsClosed { try numbers.save(1, for: 1) })
    #expect(throwsClosed { try numbers.remove(1) })
    #expect(throwsClosed { try numbers.removeAll() })
    #expect(throwsClosed { try numbers.touch(1) })
    #expect(throwsClosed { try numbers.validate() })
    #expect(throwsClosed { try numbers.keys(order: order) })
    #expect(throwsClosed { try fixture.store.cache("other", of: Int.self) })
    try fixture.store.close()
  }

  private func all<Element>(_ cursor: Cursor<Element>) throws -> [Element] {
    var elements: [Element] = []
    while let element = try cursor.next() { elements.append(element) }
    return elements
  }

  private func values<Key, Value>(
    _ cursor: Cursor<(key: Key, entry: Result<Entry<Value>, StoreError>)>
  ) throws -> [Value] {
    try all(cursor).map { try $0.entry.get().value }
  }

  /// Changes a record in a way that its checksum agrees with.
  private func rewrite(
    _ row: (key: [UInt8], value: [UInt8]), in fixture: Fixture, _ change: (inout [UInt8]) -> Void
  ) throws {
    var value = row.value
    change(&value)
    var batch = WriteBatch()
    batch.put(row.key.span.bytes, stamp: Record.stamp) { $0.append(value) }
    try fixture.engine.write(&batch, synced: false)
  }
}
