import AcceptanceRows
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Encoded values that would be kept in a segment are compressed with Snappy.
@Suite(.acceptance) struct CompressionTests {
  /// A list that takes about 12,000 bytes, and much less once compressed.
  private static let list = (0..<300).map { "item number \($0), of a list that repeats itself" }

  private static func store(
    _ directory: borrowing TemporaryDirectory, _ name: String = "store",
    configure: (inout Store.Options) -> Void = { _ in }
  ) throws -> Store {
    var options = Store.Options()
    options.memoryBytes = 0
    configure(&options)
    return try Store(at: URL(filePath: directory.path(name)), options: options)
  }

  private static func lists(
    _ store: Store, coder: Coder<[String]> = .binary, schema: Schema<[String]> = Schema(version: 1)
  ) throws -> Cache<Int, [String]> {
    try store.cache("lists", of: [String].self, keyedBy: Int.self, schema: schema, coder: coder)
  }

  /// The record under a key, and the size of its payload as it is stored and as it was encoded.
  private static func record<Value>(
    _ key: Int, in cache: Cache<Int, Value>
  ) throws -> (record: Record, stored: Int, encoded: Int) {
    let key = try cache.core.recordKey(of: key, id: cache.core.id)
    let bytes = try #require(try cache.core.context.get([UInt8](key.bytes)))
    let record = try Record(bytes.span.bytes, under: key.bytes.span.bytes)
    var payload = ByteBuffer()
    let isWhole = record.appendPayload(in: bytes.span.bytes, to: &payload)
    let count = record.encodedBytes(in: bytes.span.bytes)
    #expect(isWhole && count == payload.count)
    return (record, record.payload.count, payload.count)
  }

  @Test(
    "A large value is compressed, and read with any options, from backups and after a salvage.",
    arguments: [Coder<[String]>.binary, .json, .propertyList].map(\.format))
  func everywhere(format: PayloadFormat) throws {
    let coder = try #require(
      [Coder<[String]>.binary, .json, .propertyList].first { $0.format == format })
    let directory = try TemporaryDirectory()
    var store = try Self.store(directory)
    try Self.lists(store, coder: coder).save(Self.list, for: 1)
    let (record, stored, encoded) = try Self.record(1, in: Self.lists(store, coder: coder))
    #expect(record.isCompressed && stored < encoded / 3 && encoded > 10_000)
    try store.backup(to: URL(filePath: directory.path("backup")))
    try store.close()

    func expectList(_ store: Store) throws {
      let lists = try Self.lists(store, coder: coder)
      #expect(try lists.value(for: 1) == Self.list)
      let cursor = try lists.entries()
      #expect(try cursor.next()?.entry.get().value == Self.list)
      #expect(try cursor.next() == nil)
      try store.close()
    }
    try expectList(Self.store(directory))
    try expectList(Self.store(directory) { $0.access = .readOnly })
    try expectList(Self.store(directory) { $0.compression = false })
    try expectList(Self.store(directory) { $0.advanced.separatedValueBytes = nil })
    try Store.restore(
      from: URL(filePath: directory.path("backup")), to: URL(filePath: directory.path("restored")))
    try expectList(Self.store(directory, "restored"))
    let report = try Store.salvage(
      from: URL(filePath: directory.path("store")), to: URL(filePath: directory.path("salvaged")))
    #expect(report.entries["lists"] == 1 && report.losses.isEmpty)
    store = try Self.store(directory, "salvaged")
    #expect(try Self.record(1, in: Self.lists(store, coder: coder)).record.isCompressed)
    try expectList(store)
  }

  @Test("Values that are small, hard to compress or bytes are stored as they were encoded.")
  func plain() throws {
    let directory = try TemporaryDirectory()
    let store = try Self.store(directory)
    defer { #expect(throws: Never.self) { try store.close() } }
    var random = SplitMix64(seed: 1)
    let lists = try Self.lists(store)
    try lists.save(Array(Self.list.prefix(50)), for: 1)
    #expect(try Self.record(1, in: lists).encoded > 2000)
    let noise = (0..<2000).map { _ in String(UnicodeScalar(UInt8(random.next() % 128))) }
    try lists.save([noise.joined(), String(noise.joined().reversed())], for: 2)
    let bytes = try store.cache("bytes", of: Data.self, keyedBy: Int.self, coder: .bytes)
    try bytes.save(Data(count: 20_000), for: 1)
    let numbers = try store.cache("numbers", of: [UInt64].self, keyedBy: Int.self)
    try numbers.save((0..<1000).map { _ in random.next() }, for: 1)
    for plain in [
      try Self.record(1, in: lists), try Self.record(2, in: lists), try Self.record(1, in: bytes),
      try Self.record(1, in: numbers),
    ] {
      #expect(!plain.record.isCompressed && plain.stored == plain.encoded)
    }
    #expect(try numbers.value(for: 1)?.count == 1000)
    #expect(try lists.value(for: 2)?.count == 2)
  }

  @Test(
    "Without compression, without segments and in memory, values are stored as they were encoded.",
    arguments: 0..<3)
  func turnedOff(way: Int) throws {
    let directory = try TemporaryDirectory()
    let store =
      switch way {
      case 0: try Self.store(directory) { $0.compression = false }
      case 1: try Self.store(directory) { $0.advanced.separatedValueBytes = nil }
      default: Store.inMemory()
      }
    defer { #expect(throws: Never.self) { try store.close() } }
    let lists = try Self.lists(store)
    try lists.save(Self.list, for: 1)
    #expect(try !Self.record(1, in: lists).record.isCompressed)
    #expect(try lists.value(for: 1) == Self.list)
  }

  @Test("A touch keeps a compressed payload, and a migration compresses or decompresses it.")
  func rewritten() throws {
    let directory = try TemporaryDirectory()
    var store = try Self.store(directory)
    var lists = try Self.lists(store, coder: .json)
    try lists.save(Self.list, for: 1)
    try lists.save(["short"], for: 2)
    let saved = try Self.record(1, in: lists)
    let written = store.statistics.segments.writtenBytes
    #expect(try lists.touch(1, validator: Validator("v")))
    #expect(store.statistics.segments.writtenBytes == written)
    #expect(try Self.record(1, in: lists).stored == saved.stored)
    #expect(try lists.value(for: 1) == Self.list)
    try store.close()

    for (version, compression) in [(2, false), (3, true)] {
      store = try Self.store(directory) { $0.compression = compression }
      let schema = Schema<[String]>(version: version)
        .reading(version - 1, as: [String].self) { $0 + ["\(version)"] }
      lists = try Self.lists(store, coder: version == 2 ? .binary : .json, schema: schema)
      let report = try store.migrate(lists)
      #expect(report.migrated == 2 && report.unreadable == 0)
      let record = try Self.record(1, in: lists)
      #expect(record.record.isCompressed == compression)
      #expect(try lists.entry(for: 1)?.validator == Validator("v"))
      #expect(try lists.value(for: 1) == Self.list + (2...version).map { "\($0)" })
      #expect(try lists.value(for: 2) == ["short"] + (2...version).map { "\($0)" })
      try store.close()
    }
  }

  @Test("A budget and the contents count a payload as it is stored.")
  func counted() throws {
    let directory = try TemporaryDirectory()
    let store = try Self.store(directory) { $0.byteBudget = 100_000 }
    defer { #expect(throws: Never.self) { try store.close() } }
    let lists = try Self.lists(store)
    for key in 0..<20 { try lists.save(Self.list, for: key) }
    // 20 lists are 240,000 bytes as they were encoded.
    #expect(try lists.count() == 20)
    let stored = try Self.record(0, in: lists).stored
    let contents = try store.contents()
    let bytes = try #require(contents["lists"]).fresh.bytes
    #expect(bytes >= 20 * stored && bytes < 20 * stored + 2000)
  }

  @Test("The memory tier weighs a value by its size as it was encoded.")
  func weighed() throws {
    let directory = try TemporaryDirectory()
    let store = try Self.store(directory) { $0.memoryBytes = 10 << 20 }
    defer { #expect(throws: Never.self) { try store.close() } }
    let lists = try Self.lists(store)
    try lists.save(Self.list, for: 1)
    for _ in 0..<3 { #expect(try lists.value(for: 1) == Self.list) }
    #expect(store.statistics.memory.bytes > 30_000)
  }

  @Test("The documented format is read: a literal, and a copy of what was before.")
  func documentedFormat() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let text = try fixture.store.cache("text", of: Data.self, coder: .bytes)
    try text.save(Data(), for: "k")
    try fixture.rewriteOnlyRecord { record in
      record[1] |= Record.Flag.isCompressed
      // 12 bytes: a literal of 4, and a copy of 8 bytes from 4 bytes before, which overlaps it.
      record += [12, 3 << 2] + Array("abcd".utf8) + [(8 - 4) << 2 | 1, 4]
    }
    #expect(try text.value(for: "k") == Data("abcdabcdabcd".utf8))
  }

  @Test("A payload that cannot be decompressed is undecodable, and validate deletes it.")
  func undecodable() throws {
    let fixture = try Fixture(.segments)
    defer { fixture.end() }
    let lists = try fixture.store.cache("lists", of: [String].self)
    try lists.save(Self.list, for: "k")
    let whole = try fixture.onlyRecord().value
    let payload = Record.headerBytes
    #expect(whole[1] & Record.Flag.isCompressed != 0)
    let forgeries: [[UInt8]] = [
      [], [0x80], [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
      // 32 MiB and a byte: more than a payload may have.
      [0x81, 0x80, 0x80, 0x10], [1], [1, 3 << 2, 0x41], [8, 1 << 2, 0x41, 0x42, 6 << 2 | 1, 9],
      Array(whole[payload...].dropLast()), Array(whole[payload...]) + [0],
    ]
    for forgery in forgeries {
      try fixture.rewriteOnlyRecord { $0 = Array(whole[..<payload]) + forgery }
      #expect(throwsUndecodable("k") { try lists.value(for: "k") }, "\(forgery.prefix(8))")
    }
    #expect(try lists.validate().unreadable == 1)
    #expect(try lists.value(for: "k") == nil)
  }

  @Test("No changed byte of a compressed payload reads or writes outside of its memory.")
  func changedBytes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let lists = try fixture.store.cache("lists", of: [String].self)
    try lists.save([], for: "k")
    var payload = ByteBuffer()
    payload.append(Array(repeating: Array("some text, and again ".utf8), count: 20).flatMap { $0 })
    #expect(Snappy.compress(&payload, from: 0))
    let compressed = Array(payload)
    var random = SplitMix64(seed: 3)
    for place in compressed.indices {
      for _ in 0..<20 {
        var changed = compressed
        changed[place] = UInt8(truncatingIfNeeded: random.next())
        try fixture.rewriteOnlyRecord { record in
          record = Array(record[..<Record.headerBytes]) + changed
          record[1] |= Record.Flag.isCompressed
        }
        // A changed letter gives other text, which is no list either.
        #expect(throwsUndecodable("k") { try lists.value(for: "k") })
      }
    }
  }
}
