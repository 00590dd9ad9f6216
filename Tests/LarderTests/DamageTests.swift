import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Damage to one record is an error for that record, which it names, and for no other.
@Suite struct DamageTests {
  @Test(
    "Any single flipped bit of a stored record is a typed error for that record alone.",
    arguments: StoreKind.allCases)
  func flippedBits(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    for key in ["a", "b", "c"] { try notes.save(Note(title: key, body: "text"), for: key) }
    let recordKey = try notes.core.recordKey(of: "b", id: notes.core.id).bytes
    let intact = try #require(try fixture.rows(in: .records).first { $0.key == recordKey }).value

    for bit in 0..<(intact.count * 8) {
      var value = intact
      value[bit / 8] ^= 1 << UInt8(bit % 8)
      try fixture.put(value, under: recordKey)

      #expect(throwsCorrupt("notes", "b") { try notes.value(for: "b") }, "bit \(bit)")
      #expect(throwsCorrupt("notes", "b") { try notes.touch("b") }, "bit \(bit)")
      #expect(try notes.value(for: "a")?.title == "a")
      #expect(try notes.value(for: "c")?.title == "c")
      #expect(try scan(notes) == ["a", "corrupt", "c"], "bit \(bit)")
    }

    try fixture.put(intact, under: recordKey)
    #expect(try notes.value(for: "b")?.title == "b")
  }

  @Test(
    "A record cut at any byte, or with a byte more, is a typed error.",
    arguments: StoreKind.allCases
  )
  func cutRecords(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k")
    let record = try fixture.onlyRecord()

    for count in 0..<record.value.count {
      try fixture.put(Array(record.value[..<count]), under: record.key)
      #expect(throwsCorrupt("notes", "k") { try notes.value(for: "k") }, "\(count) bytes")
    }
    try fixture.put(record.value + [0], under: record.key)
    #expect(throwsCorrupt("notes", "k") { try notes.value(for: "k") })
  }

  @Test("A record stored under another key counts as damaged.")
  func otherKey() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k")
    let record = try fixture.onlyRecord()

    try fixture.put(record.value, under: notes.core.recordKey(of: "l", id: notes.core.id).bytes)

    #expect(throwsCorrupt("notes", "l") { try notes.value(for: "l") })
  }

  @Test(
    "A damaged entry can be saved again, removed, or deleted by validate.",
    arguments: StoreKind.allCases)
  func cured(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    for key in ["a", "b", "c"] {
      try notes.save(Note(title: key), for: key)
      try fixture.put([0], under: notes.core.recordKey(of: key, id: notes.core.id).bytes)
    }

    try notes.save(Note(title: "new"), for: "a")
    #expect(try notes.remove("b") == true)
    #expect(try notes.validate().unreadable == 1)

    #expect(try notes.value(for: "a")?.title == "new")
    #expect(try notes.lookup(for: "b").kind == "missing")
    #expect(try notes.lookup(for: "c").kind == "missing")
  }

  @Test(
    "An entry that does not decode is deleted by validate, and can be saved again.",
    arguments: StoreKind.allCases)
  func undecodable(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k")
    try fixture.rewriteOnlyRecord { $0.removeLast() }
    #expect(throwsUndecodable("k") { try notes.value(for: "k") })

    let report = try notes.validate()

    #expect(report.unreadable == 1 && report.kept == 0)
    #expect(try notes.lookup(for: "k").kind == "missing")
    try notes.save(Note(title: "new"), for: "k")
    #expect(try notes.value(for: "k")?.title == "new")
  }

  @Test(
    "An intact record of a later format is refused, and kept by validate.",
    arguments: [
      (offset: 0, value: UInt8(2)), (1, 0b1000), (1, 0x40), (3, 0b1000), (3, 0x80),
    ])
  func laterFormat(offset: Int, value: UInt8) throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k")
    try fixture.rewriteOnlyRecord { $0[offset] = value }

    #expect(
      throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }) {
        try notes.value(for: "k")
      })
    #expect(try notes.validate().newer == 1)
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test("An intact record with an impossible field is refused, and kept by validate.")
  func impossibleFields() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k", lifetime: .seconds(5))
    // The sign of the fresh time.
    try fixture.rewriteOnlyRecord { $0[43] |= 0x80 }
    func expectRefused() throws {
      #expect(
        throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }) {
          try notes.value(for: "k")
        })
      #expect(try notes.validate().newer == 1)
    }
    try expectRefused()
    try notes.save(Note(title: "t"), for: "k", tags: ["tag"])
    // The length of the tag.
    try fixture.rewriteOnlyRecord { $0[37] = 0xFF }
    try expectRefused()
    try notes.save(Note(title: "t"), for: "k", validator: "v")
    try fixture.rewriteOnlyRecord { $0[36] = 0x7F }
    try expectRefused()
  }

  @Test("Reads skip a validator in a record, and touch keeps it.")
  func validators() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k")
    let validator = Array(#""etag""#.utf8)
    try fixture.rewriteOnlyRecord { bytes in
      bytes[1] |= Record.Flag.hasValidator
      bytes.insert(contentsOf: [UInt8(validator.count)] + validator, at: Record.headerBytes)
    }

    #expect(try notes.value(for: "k") == Note(title: "t"))
    #expect(try notes.touch("k"))
    let record = try fixture.onlyRecord()
    // After the original sequence and the validator's length.
    #expect(record.value[(Record.headerBytes + 9)...].starts(with: validator))
    #expect(try notes.value(for: "k") == Note(title: "t"))
  }

  @Test("An entry with an unknown coder is undecodable.")
  func unknownCoder() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    try notes.save(Note(title: "t"), for: "k")
    try fixture.rewriteOnlyRecord { $0[2] = 200 }

    #expect(throwsUndecodable("k") { try notes.value(for: "k") })
  }

  @Test(
    "Damaged bookkeeping of one cache is a typed error and affects no other cache.",
    arguments: StoreKind.allCases)
  func registration(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("a", of: Int.self).save(1, for: "k")
    try fixture.store.cache("b", of: Int.self).save(2, for: "k")
    let key = Metadata.cache("a")
    let row = try #require(try fixture.rows(in: .metadata).first { $0.key == key })
    for index in row.value.indices {
      var value = row.value
      value[index] ^= 0x10
      try fixture.put(value, under: key)
      try fixture.reopen()

      #expect(throwsCorrupt("a", "") { try fixture.store.cache("a", of: Int.self) })
      #expect(try fixture.store.cache("b", of: Int.self).value(for: "k") == 2)
    }
  }

  @Test(
    "A damaged counter, or a newer format, stops the store from opening.",
    arguments: StoreKind.allCases)
  func counters(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache("a", of: Int.self).save(1, for: "k")
    let row = try #require(try fixture.rows(in: .metadata).first { $0.key == Metadata.nextID })

    try fixture.put([1, 2, 3], under: row.key)
    #expect(throwsCorrupt("", "") { try Store(engine: fixture.engine, origin: .disk) })
    try fixture.put(row.value, under: row.key)

    var rows = WriteBatch()
    rows.putMetadata(Metadata.formatVersion + 1, under: Metadata.format)
    try fixture.engine.write(&rows, synced: false)
    #expect(
      throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }) {
        try Store(engine: fixture.engine, origin: .disk)
      })
  }

  private func scan(_ notes: Cache<String, Note>) throws -> [String] {
    var seen: [String] = []
    let cursor = try notes.entries()
    while let item = try cursor.next() {
      switch item.entry {
      case .success(let entry): seen.append(entry.value.title)
      case .failure(.corrupt("notes", item.key, _)): seen.append("corrupt")
      case .failure(let error): throw error
      }
    }
    return seen
  }
}

func throwsCorrupt<R>(_ cache: String, _ key: String, _ body: () throws -> R) -> Bool {
  throwsStoreError(where: { if case .corrupt(cache, key, _) = $0 { true } else { false } }, body)
}
