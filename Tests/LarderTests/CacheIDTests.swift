import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// No cache gets the id of another one, and with it the other one's entries.
@Suite(.timeLimit(.minutes(5))) struct CacheIDTests {
  /// What the rows of a store say of the ids in it.
  private struct Ids {
    /// Those of records and of index rows.
    var ofRows: Set<UInt64> = []
    var registered: Set<UInt64> = []
    var next: UInt64 = 1
    var tags = 0

    init(at path: String) throws {
      let engine = try LevelDBEngine(at: path)
      let cursor = try engine.cursor(over: EngineRange())
      while try cursor.next() {
        let (key, value) = cursor.withEntry { key, value in ([UInt8](key), [UInt8](value)) }
        var at = 1
        switch KeySpace(rawValue: key[0]) {
        case .records, .expiry: ofRows.insert(try #require(readVarint(key.span.bytes, at: &at)))
        default: break
        }
        if key.starts(with: Metadata.cachePrefix),
          case .registration(let found) = Registration.read(value, under: key)
        {
          registered.insert(found.id)
        }
        if key.starts(with: Metadata.tagPrefix) { tags += 1 }
        if key == Metadata.nextID { next = try #require(Metadata.number(in: value, under: key)) }
      }
      try engine.close()
    }
  }

  private static func options() -> Store.Options {
    var options = Store.Options()
    options.clock = ManualClock()
    return options
  }

  /// Expects that a store, after a cut of its files, has no record without its cache.
  private static func expectOwned(
    _ path: String, _ place: String, tagsOfRecords: Int = 0
  ) throws -> Bool {
    do {
      try Store(at: URL(filePath: path), options: options()).close()
    } catch StoreError.corrupt {
      // It is refused, so that no cache gets anything.
      return false
    }
    let ids = try Ids(at: path)
    #expect(ids.ofRows.isSubset(of: ids.registered), "\(place): \(ids)")
    #expect(ids.next > ids.ofRows.max() ?? 0, "\(place): \(ids)")
    if !ids.ofRows.isEmpty { #expect(ids.tags >= tagsOfRecords, "\(place): \(ids)") }
    return !ids.ofRows.isEmpty
  }

  /// Cuts each log and each segment of a store at many places, each time in another copy of it, and
  /// expects that no record is left without its cache.
  private static func cut(_ path: String, tagsOfRecords: Int = 0) throws {
    let places = try TemporaryDirectory()
    let names = try SystemFiles().names(in: path).filter {
      $0.hasSuffix(".log") || $0.hasSuffix(".segment")
    }
    var withRecords = 0
    for name in names.sorted() {
      let count = try #require(try SystemFiles().byteCount(of: "\(path)/\(name)"))
      let steps = 12 * proofFactor
      for step in 0..<steps {
        let copy = places.path("\(name) \(step)")
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        let end = count * step / steps
        try SystemFiles().truncate("\(copy)/\(name)", to: end)
        if try expectOwned(copy, "\(name) cut at \(end)", tagsOfRecords: tagsOfRecords) {
          withRecords += 1
        }
        try FileManager.default.removeItem(atPath: copy)
      }
    }
    #expect(withRecords >= 6, "the cuts leave too little")
  }

  private static func fill(_ store: Store) throws {
    for name in ["images", "lists", "texts"] {
      let cache = try store.cache(name, of: String.self, lifetime: .days(1))
      for number in 0..<300 {
        let text = String(repeating: "\(name) \(number) ", count: number % 40 == 0 ? 800 : 20)
        try cache.save(text, for: "\(number)", tags: ["t\(number % 3)"])
      }
    }
    try store.invalidate(tag: "t0")
    try store.invalidate(tag: "t1")
  }

  private static func importRecords(to path: String) throws {
    var store = try StoreImport(to: path)
    for (name, size) in [("images", 9000), ("lists", 50), ("texts", 5000)] {
      try store.add(
        Registration(keys: .text, coder: 4, schemaVersion: 1, lifetime: .days(1)), named: name)
      for number in 0..<150 {
        var record = ImportedRecord(
          coder: 4, schemaVersion: UInt32(number), savedAt: ManualClock().now(),
          expiresAt: ManualClock().now() + 60,
          payload: [UInt8](repeating: UInt8(number), count: size))
        if number > 100 { record.tags = ["t"] }
        try store.add(record, under: Array("\(number)".utf8), in: name)
      }
    }
    try store.finish()
  }

  @Test("An import whose end is lost leaves no record without its cache and the next id.")
  func cutImport() throws {
    let places = try TemporaryDirectory()
    let path = places.path("imported")
    try Self.importRecords(to: path)
    // An opening writes the rows of the log, which is to be cut, into a table.
    let copy = places.path("copy")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let ids = try Ids(at: copy)
    #expect(ids.registered == [1, 2, 3] && ids.ofRows == [1, 2, 3] && ids.next == 4)
    try Self.cut(path)
  }

  @Test("A salvaged store whose end is lost has no record without its cache, the next id and tags.")
  func cutSalvage() throws {
    let places = try TemporaryDirectory()
    let path = places.path("store")
    let store = try Store(at: URL(filePath: path), options: Self.options())
    try Self.fill(store)
    try store.close()
    // The registration of a cache is lost, and one row of a tag.
    let engine = try LevelDBEngine(at: path)
    var batch = WriteBatch()
    batch.remove(Metadata.cache("lists").span.bytes)
    let (tag, damaged) = (Metadata.tag(Array("t1".utf8)), [7] as [UInt8])
    batch.put(tag.span.bytes, damaged.span.bytes)
    try engine.write(&batch, synced: true)
    try engine.close()
    let target = places.path("salvaged")
    let report = try Store.salvage(from: URL(filePath: path), to: URL(filePath: target))
    #expect(report.namelessEntries == 300 && report.endedTags == ["t1"])
    try Self.cut(target, tagsOfRecords: 2)
  }

  /// Rows of a store whose metadata is damaged in some way.
  enum Damage: CaseIterable {
    case nextIDLost, nextIDLow, allMetadataLost, onlyNotes
  }

  @Test(
    "An id that a row in the store bears is not handed out, whatever the metadata says.",
    arguments: Damage.allCases, StoreKind.allCases)
  func bornIDs(damage: Damage, kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    for name in ["a", "b", "c"] {
      let cache = try fixture.store.cache(name, of: String.self, lifetime: .days(1))
      for number in 0..<20 { try cache.save("\(name) \(number)", for: "\(number)") }
    }
    try fixture.store.context.writeNotes()
    var batch = WriteBatch()
    if damage == .nextIDLow {
      batch.putMetadata(1, under: Metadata.nextID)
    } else {
      let key = Metadata.nextID
      batch.remove(key.span.bytes)
    }
    if damage == .allMetadataLost || damage == .onlyNotes {
      for name in ["a", "b", "c"] { batch.remove(Metadata.cache(name).span.bytes) }
    }
    if damage == .onlyNotes {
      for row in try fixture.rows(in: .records) { batch.remove(row.key.span.bytes) }
    }
    try fixture.engine.write(&batch, synced: true)
    try fixture.reopen()
    let rows = try fixture.rows(in: .notes)
    let old = Set(
      rows.compactMap { row in
        let key = row.key
        return NotePack(key: key.span.bytes)?.cacheID
      })
    #expect(old == [1, 2, 3])
    let new = try fixture.store.cache("new", of: String.self, lifetime: .days(1))
    #expect(try new.count() == 0 && new.value(for: "3") == nil)
    #expect(!old.contains(new.core.id))
    try new.save("new", for: "3")
    try new.removeAll()
    #expect(!old.contains(new.core.id))
    #expect(try new.count() == 0 && new.value(for: "3") == nil)
    try fixture.store.write { batch in
      batch.removeAll(from: new)
      batch.save("again", for: "3", in: new)
      batch.removeAll(from: new)
    }
    #expect(!old.contains(new.core.id))
    #expect(try new.count() == 0)
    let second = try fixture.store.cache("second", of: String.self, lifetime: .days(1))
    #expect(!old.union([new.core.id]).contains(second.core.id))
  }

  @Test("A cache that a store opened for reading only does not have is empty.")
  func readOnly() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: String.self)
    try cache.save("a", for: "k")
    var batch = WriteBatch()
    let key = Metadata.nextID
    batch.remove(key.span.bytes)
    batch.remove(Metadata.cache("a").span.bytes)
    try fixture.engine.write(&batch, synced: true)
    try fixture.store.close()
    var options = Self.options()
    options.access = .readOnly
    let reading = try Store(at: fixture.directory, options: options)
    #expect(try reading.cache("b", of: String.self).value(for: "k") == nil)
    try reading.close()
    try fixture.reopen()
  }

  @Test("A stored counter with the last number makes new caches fail, and nothing else.")
  func lastID() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.cache("a", of: String.self).save("a", for: "k")
    for number in [UInt64.max, UInt64.max - 1] {
      var batch = WriteBatch()
      batch.putMetadata(number, under: Metadata.nextID)
      try fixture.engine.write(&batch, synced: true)
      try fixture.reopen()
      let cache = try fixture.store.cache("a", of: String.self)
      #expect(try cache.value(for: "k") == "a")
      if number < .max { _ = try fixture.store.cache("last", of: String.self) }
      #expect(
        throwsStoreError(where: { if case .corrupt = $0 { true } else { false } }) {
          try cache.removeAll()
        })
      #expect(
        throwsStoreError(where: { if case .corrupt = $0 { true } else { false } }) {
          _ = try fixture.store.cache("new", of: String.self)
        })
      #expect(try cache.value(for: "k") == "a")
    }
  }

  @Test("A damaged block among the records does not keep a cache from being cleared.")
  func damagedBlock() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: String.self)
    for number in 0..<200 { try cache.save(String(repeating: "x", count: 90), for: "\(number)") }
    try fixture.engine.compact(EngineRange())
    try fixture.store.close()
    let path = fixture.directory.path(percentEncoded: false)
    let tables = try SystemFiles().names(in: path).filter { $0.hasSuffix(".ldb") }
    for name in tables {
      var bytes = try SystemFiles().read("\(path)/\(name)", limit: nil)
      bytes[bytes.count / 2] ^= 1
      try SystemFiles().replace("\(path)/\(name)", with: bytes)
    }
    try fixture.reopen()
    let damaged = try fixture.store.cache("a", of: String.self)
    try damaged.removeAll()
    #expect(try damaged.count() == 0)
    try damaged.save("b", for: "k")
    #expect(try damaged.value(for: "k") == "b")
  }
}
