import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Stores written earlier stay readable, and the bytes written stay those documented.
///
/// `Fixtures/format-1.txt` holds the rows of a small store: a key and a value in hex on each line.
/// `Fixtures/format-2.txt` holds the rows of the same store with its payloads in a segment, and the
/// segment. Both are of a version that had a row of an index for each record; those of this version
/// are in `format-1-notes.txt` and `format-2-notes.txt`; `format-1-shared.txt` has a record with a
/// shared version. They are never changed; a new format version gets a fixture of its own.
@Suite struct FormatTests {
  @Test("Format 1: the rows of the fixture are read, to the last bit.")
  func read() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    // The engine alone writes the row of reserved sequences.
    let sequence = [0] + Array("sequence".utf8)
    for row in try goldenRows() where row.key != sequence {
      try fixture.put(row.value, under: row.key)
    }
    fixture.clock.set(Self.savedAt + 60)
    try fixture.reopen()
    try expectContents(of: fixture.store)
  }

  @Test("Format 2: rows and a segment of the fixture are read, to the last bit.")
  func readSegment() throws {
    let directory = try TemporaryDirectory()
    let rows = try LevelDBEngine(at: directory.path)
    for row in try goldenRows("format-2") where row.key.first != UInt8(ascii: "s") {
      var batch = WriteBatch()
      batch.put(row.key.span.bytes, row.value.span.bytes)
      // The engine alone writes the row of reserved sequences.
      if row.key != CommitSequence.key { try rows.write(&batch, synced: false) }
    }
    try rows.close()
    for row in try goldenRows("format-2") where row.key.first == UInt8(ascii: "s") {
      try SystemFiles().create(directory.path("00000001.segment"), with: row.value)
    }
    try SystemFiles().replace(directory.path("LARDER"), with: Array("larder 2\n".utf8))
    var options = Store.Options()
    options.clock = ManualClock(Self.savedAt + 60)
    let store = try Store(at: URL(filePath: directory.path), options: options)
    try expectContents(of: store)
    try store.close()
  }

  @Test("Format 1: a record with a shared version is read, to the last bit.")
  func readShared() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    for row in try goldenRows("format-1-shared") { try fixture.put(row.value, under: row.key) }
    fixture.clock.set(Self.savedAt + 60)
    try fixture.reopen()
    let texts = try fixture.store.cache("texts", of: [String].self, coder: .json)
    let text = try #require(try texts.entry(for: "all"))
    #expect(text.value == ["Maritime History", "Schlaf \u{1F634}"] && text.savedAt == Self.savedAt)
    let row = try #require(try fixture.rows(in: .records).first)
    let record = try Record(row.value.span.bytes, under: row.key.span.bytes)
    #expect(record.sharedVersion == 0x0123_4567_89AB_CDEF)
  }

  private func expectContents(of store: Store) throws {
    let (texts, notes, data) = try caches(of: store)

    let text = try #require(try texts.entry(for: "all"))
    #expect(text.value == ["Maritime History", "Schlaf \u{1F634}"])
    #expect(text.savedAt == Self.savedAt)
    #expect(text.age == .seconds(60))
    #expect(try notes.value(for: -2) == ["a property list"])
    #expect(try notes.value(for: 300) == [])
    #expect(try data.value(for: Data([0, 255])) == Data([1, 2, 3]))
    #expect(texts.core.id == 5)
    #expect(notes.core.id == 2)
    #expect(data.core.id == 3)
    let fourth = try store.cache("fourth", of: Int.self)
    #expect(fourth.core.id == 6)
  }

  @Test("Format 1: the entries of the fixture, which has index rows, are swept when they are due.")
  func sweepOfEarlierVersion() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    for row in try goldenRows() where row.key != CommitSequence.key {
      try fixture.put(row.value, under: row.key)
    }
    #expect(try fixture.rows(in: .expiry).count == 3)
    fixture.clock.set(Self.savedAt + 60)
    try fixture.reopen()
    #expect(try fixture.store.sweep() == 0)
    #expect(try fixture.rows(in: .expiry).isEmpty)
    try expectContents(of: fixture.store)
    fixture.clock.set(Self.savedAt + 8 * 86_400)
    #expect(try fixture.store.sweep() == 1)
    fixture.clock.set(Self.savedAt + 40 * 86_400)
    #expect(try fixture.store.sweep() == 2)
    #expect(try fixture.rows(in: .records).count == 1)
  }

  @Test("Format 1: the same store is written as the same rows.")
  func written() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    fixture.clock.set(Self.savedAt)
    try write(to: fixture.store)
    try fixture.store.context.writeNotes()

    var written = ""
    for row in try KeySpace.allCases.flatMap({ try fixture.rows(in: $0) }) {
      written += "\(hex(row.key)) \(hex(row.value))\n"
    }
    var golden = ""
    for row in try goldenRows("format-1-notes") { golden += "\(hex(row.key)) \(hex(row.value))\n" }

    #expect(written == golden)
  }

  @Test("Format 2: the same store is written as the same rows and the same segment.")
  func writtenSegment() throws {
    let directory = try TemporaryDirectory()
    var options = Store.Options()
    options.advanced.separatedValueBytes = 1
    // What Snappy makes of a payload may differ between its versions.
    options.compression = false
    options.clock = ManualClock(Self.savedAt)
    let store = try Store(at: URL(filePath: directory.path), options: options)
    try write(to: store)
    try store.close()

    var written = ""
    // Without the format of separated values, their rows are read as they are.
    let rows = try LevelDBEngine(at: directory.path)
    let cursor = try rows.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
    while try cursor.next() {
      cursor.withEntry { key, value in
        written += "\(hex([UInt8](key))) \(hex([UInt8](value)))\n"
      }
    }
    try rows.close()
    let segment = try SystemFiles().read(directory.path("00000001.segment"), limit: nil)
    written += "\(hex(Array("segment".utf8))) \(hex(segment))\n"
    var golden = ""
    for row in try goldenRows("format-2-notes")
    where row.key.first == KeySpace.records.rawValue || row.key.first == UInt8(ascii: "s") {
      golden += "\(hex(row.key)) \(hex(row.value))\n"
    }
    #expect(written == golden)
  }

  private func write(to store: Store) throws {
    let (texts, notes, data) = try caches(of: store)
    try texts.save([], for: "gone")
    try texts.removeAll()
    try store.write { $0.removeAll(from: texts) }
    try texts.save(["Maritime History", "Schlaf \u{1F634}"], for: "all")
    try notes.save(["a property list"], for: -2)
    try notes.save([], for: 300)
    try data.save(Data([1, 2, 3]), for: Data([0, 255]))
  }

  /// 2026-01-01 00:00:00.1 UTC, which has no exact form in binary.
  private static let savedAt = Date(timeIntervalSinceReferenceDate: 788_918_400.1)

  private func caches(
    of store: Store
  ) throws -> (Cache<String, [String]>, Cache<Int, [String]>, Cache<Data, Data>) {
    (
      try store.cache("texts", of: [String].self, coder: .json),
      try store.cache(
        "notes", of: [String].self, keyedBy: Int.self,
        lifetime: .fresh(for: .seconds(90), thenStaleFor: .days(30)), schema: Schema(version: 7),
        coder: .propertyList),
      try store.cache(
        "data", of: Data.self, keyedBy: Data.self, lifetime: .unlimited, coder: .bytes)
    )
  }

  private func goldenRows(
    _ name: String = "format-1"
  ) throws -> [(key: [UInt8], value: [UInt8])] {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/\(name).txt")
    let text = try String(contentsOf: file, encoding: .utf8)
    return try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let parts = line.split(separator: " ", omittingEmptySubsequences: false)
      try #require(parts.count == 2)
      return (try bytes(parts[0]), try bytes(parts[1]))
    }
  }

  @Test("Recovery finds the commits of records where records have their stamp")
  func stampOfRecords() {
    #expect(Record.stamp.offset == 24 && Record.headerBytes == 36)
    #expect(Store.Options().engineOptions.stamp == Record.stamp)
  }

  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
  }

  private func bytes(_ hex: Substring) throws -> [UInt8] {
    let digits = Array(hex)
    return try stride(from: 0, to: digits.count, by: 2).map { index in
      try #require(UInt8(String(digits[index...(index + 1)]), radix: 16))
    }
  }
}
