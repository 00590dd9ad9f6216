import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import LarderTesting
import Testing

/// `export` and `import`.
@Suite struct ExchangeTests {
  private static func export(
    _ path: String, _ selection: Selection = Selection(), _ style: Style = Style()
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let inspection = try Inspection(at: path, now: Specimen.now)
    let status = try inspection.export(selection, style: style, to: &text)
    return (text, status)
  }

  /// Imports an export that is written to a file first.
  private static func load(
    _ text: String, to target: String?, in places: borrowing TemporaryDirectory
  ) throws -> String {
    let file = places.path("export.jsonl")
    try Data(text.utf8).write(to: URL(filePath: file))
    var report = ""
    #expect(
      try Inspection.importing(
        .lines(file), to: target, now: Specimen.now, style: Style(.jsonl)
      ).write(to: &report) == .fine)
    return report
  }

  private static func differences(_ first: String, _ second: String) throws -> String {
    var text = ""
    _ = try Inspection(at: first, now: Specimen.now).differences(
      from: try Inspection(at: second, now: Specimen.now), inCache: nil, style: Style(.csv)
    ).write(to: &text)
    return text
  }

  private static let noDifference = "difference,cache,key\n"

  /// Saves entries with each optional field, and with dates and keys that a text would round.
  static func addUnusualEntries(to path: String) throws {
    let clock = ManualClock(Specimen.now)
    let store = try Specimen.open(path, clock, separatedValueBytes: 4096)
    let cache = try store.cache(
      "e\u{301}\"\\ \u{1B}", of: [String].self, lifetime: .days(30, calendar: .current))
    try cache.save(
      ["a"], for: "own", lifetime: .fresh(for: .seconds(0.1), thenStaleFor: .unlimited))
    try cache.save(["b"], for: "validator", validator: Validator([0, 0xFF, 0x22]))
    try cache.save(["c"], for: "tags", tags: ["x", "\u{E9}", "y y"])
    try cache.save(["d"], for: "ended", tags: ["ended"])
    try store.invalidate(tag: "ended")
    try cache.save(["e"], for: "after", tags: ["ended"])
    try cache.save(Array(repeating: "long", count: 5000), for: "large")
    let sliding = try store.cache(
      "sliding", of: Int.self, lifetime: .seconds(160), expiry: .sliding(upTo: .seconds(500.1)))
    try sliding.save(1, for: "slides until a date")
    try sliding.update("slides until a date") { $0 = 2 }
    for seconds in [-0.0, 0.1, 1e-300, -1e12, 1e18, .infinity] {
      clock.set(Date(timeIntervalSinceReferenceDate: seconds))
      try cache.save(["f"], for: "date \(seconds)")
    }
    clock.set(Specimen.now)
    for key in ["", "-1", "0x41", " x ", "e\u{301}", "\u{E9}", "\u{200B}", "\u{1F468}\u{200D}"] {
      try cache.save(["g"], for: key)
    }
    for key in [Int.min, -1, 0, .max] {
      try store.cache("numbers", of: Int.self, keyedBy: Int.self).save(key, for: key)
    }
    try cache.touch("validator")
    try store.close()
  }

  @Test(
    "An export of every kind of record is imported as the same store.",
    arguments: [nil, 1] as [Int?])
  func roundTrip(separatedValueBytes: Int?) throws {
    let specimen = try Specimen(separatedValueBytes: separatedValueBytes)
    try Self.addUnusualEntries(to: specimen.path)
    let places = try TemporaryDirectory()
    let target = places.path("imported")
    let (text, status) = try Self.export(specimen.path)
    #expect(status == .fine)
    #expect(!text.contains("\"ended\",\"savedAt\""), "an entry that has ended was exported")
    let report = try Self.load(text, to: target, in: places)
    let lines = text.split(separator: "\n").count
    let caches = text.split(separator: "\n").filter { $0.contains("\"registration\":") }.count
    #expect(report.contains("\"records\":\(lines - caches - 2),"))

    let different = try Self.differences(specimen.path, target)
    #expect(different.hasPrefix(Self.noDifference))
    #expect(
      different.split(separator: "\n").count == 2 && different.hasSuffix(",ended\n"))
    var verified = ""
    #expect(
      try Inspection(at: target, now: Specimen.now).verify(style: Style()).write(to: &verified)
        == .fine,
      "\(verified)")
    // A second generation is the same, to the last byte but for the dates of the export.
    let again = try Self.export(target).text.split(separator: "\n").dropFirst()
    #expect(again.sorted() == text.split(separator: "\n").dropFirst().sorted())
  }

  @Test("A program opens an imported store, reads its entries, and writes to it.")
  func used() throws {
    let specimen = try Specimen()
    try Self.addUnusualEntries(to: specimen.path)
    let places = try TemporaryDirectory()
    let target = places.path("imported")
    _ = try Self.load(Self.export(specimen.path).text, to: target, in: places)
    let clock = ManualClock(Specimen.now)
    let store = try Specimen.open(target, clock)
    let cache = try store.cache(
      "e\u{301}\"\\ \u{1B}", of: [String].self, lifetime: .days(30, calendar: .current))
    #expect(try cache.entry(for: "tags")?.tags == ["x", "\u{E9}", "y y"])
    #expect(try cache.value(for: "large") == Array(repeating: "long", count: 5000))
    #expect(try cache.value(for: "ended") == nil)
    #expect(try cache.value(for: "after") == ["e"])
    // The cache is registered with the fields that sweeps must know of.
    try store.invalidate(tag: "x")
    #expect(try cache.value(for: "tags") == nil)
    let other = try store.cache("other", of: Int.self)
    try other.save(1, for: "k")
    clock.set(Specimen.now + 40 * 86_400)
    _ = try store.sweep()
    guard case .stale = try cache.lookup(for: "own"), case .missing = try cache.lookup(for: "after")
    else {
      Issue.record("the sweep did not keep exactly what is stale for ever")
      return
    }
    try store.close()
    var verified = ""
    #expect(
      try Inspection(at: target, now: Specimen.now).verify(style: Style()).write(to: &verified)
        == .fine)
  }

  @Test("An export leaves out what cannot be read, and says so.")
  func faults() throws {
    let specimen = try Specimen.withFaults()
    try specimen.withEngine { try $0.flipByte(from: [0x00], ending: "cache/lists") }
    let (text, status) = try Self.export(specimen.path)
    #expect(status == .damaged)
    #expect(text.hasSuffix("{\"records\":6,\"leftOut\":4}\n"))
    let places = try TemporaryDirectory()
    _ = try Self.load(text, to: places.path("imported"), in: places)
  }

  @Test("A selection is exported, but not without keys and values, or in another format.")
  func selected() throws {
    let specimen = try Specimen()
    var selection = Selection()
    selection.cache = "genres"
    selection.prefix = "fr"
    let text = try Self.export(specimen.path, selection).text
    #expect(text.split(separator: "\n").count == 4)
    var redacted = Style()
    redacted.isRedacted = true
    for style in [Style(.csv), Style(.json), redacted] {
      #expect(throws: InspectionError.self) { try Self.export(specimen.path, Selection(), style) }
    }
  }

  @Test("A dry run checks an export and writes nothing.")
  func dryRun() throws {
    let specimen = try Specimen()
    let places = try TemporaryDirectory()
    let report = try Self.load(Self.export(specimen.path).text, to: nil, in: places)
    #expect(report.contains("\"store\":null,\"isDryRun\":true,\"records\":10,"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: places.path) == ["export.jsonl"])
  }

  @Test(
    "A line that is damaged or not allowed is named, and no store is created.",
    arguments: [
      ("\"larderExport\":1", "\"larderExport\":2"), ("\"larderExport\"", "\"export\""),
      ("{\"cache\":\"blobs\",\"registration\"", "{\"cache\":\"genres\",\"registration\""),
      ("{\"cache\":\"blobs\",\"registration\"", "{\"cache\":\"\",\"registration\""),
      ("\"keyKind\":1", "\"keyKind\":9"), ("\"keyKind\":1", "\"keyKind\":\"text\""),
      ("\"cache\":\"lists\",\"key\"", "\"cache\":\"none\",\"key\""),
      ("\"key\":\"-7\"", "\"key\":\"seven\""), ("\"key\":\"-7\"", "\"key\":7"),
      ("\"savedAtBits\":\"0x41", "\"savedAtBits\":\"0xg1"),
      ("\"savedAtBits\":\"0x41", "\"savedAtBits\":\"41"),
      ("\"expiresAtBits\":\"0x41", "\"expiresAtBits\":\"0x4"),
      ("\"coder\":\"json\"", "\"coder\":\"yaml\""), ("\"coder\":\"json\"", "\"coder\":0"),
      ("\"payloadSchemaVersion\":3", "\"payloadSchemaVersion\":-3"),
      ("\"payloadSchemaVersion\":3", "\"payloadSchemaVersion\":4294967296"),
      ("\"payload\":\"", "\"payload\":\"*"), ("\"payload\":\"", "\"tags\":[\"\"],\"payload\":\""),
      ("\"payload\":\"", "\"tags\":\"a\",\"payload\":\""),
      ("\"payload\":\"", "\"tags\":[1],\"payload\":\""),
      ("\"payload\":\"", "\"validator\":\"\",\"payload\":\""),
      ("\"payload\":\"", "\"lifetime\":{\"fresh\":-1,\"stale\":0},\"payload\":\""),
      ("\"payload\":\"", "\"lifetime\":{\"fresh\":1},\"payload\":\""),
      ("\"payload\":\"", "\"lifetime\":7,\"payload\":\""),
      ("{\"records\":10", "{\"records\":9"), ("{\"records\":10,\"leftOut\":0}\n", ""),
      ("\"leftOut\":0}\n", "\"leftOut\":0}\n{}\n"), ("{\"records\":10", "[\"records\",10"),
    ])
  func refused(old: String, new: String) throws {
    let specimen = try Specimen()
    let text = try Self.export(specimen.path).text
    let range = try #require(text.range(of: old))
    let places = try TemporaryDirectory()
    let file = places.path("export.jsonl")
    try Data(text.replacingCharacters(in: range, with: new).utf8).write(to: URL(filePath: file))
    #expect {
      var report = ""
      return try Inspection.importing(
        .lines(file), to: places.path("imported"), now: Specimen.now, style: Style()
      ).write(to: &report)
    } throws: { error in
      let error = error as? InspectionError
      let status = new.hasSuffix(":2") ? Outcome.unsupported : .damaged
      return error?.status == status
        && (status == .unsupported || error?.description.contains("export.jsonl, line ") == true)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: places.path) == ["export.jsonl"])
  }

  @Test("Lines that people write need no bits: the lifetime decides when an entry expires.")
  func handwritten() throws {
    let text = """
      {"larderExport":1}
      {"cache":"c","registration":{"keyKind":1,"coder":2,"schemaVersion":1,\
      "lifetime":{"fresh":{"seconds":60},"stale":{"seconds":30}}}}
      {"cache":"c","key":"k","savedAt":"2026-01-01T00:00:00Z","coder":"json",\
      "payloadSchemaVersion":1,"payload":"WzFd"}
      {"cache":"u","registration":{"keyKind":1,"coder":2,"schemaVersion":1,\
      "lifetime":{"fresh":{"unlimited":true},"stale":{"seconds":0}}}}
      {"cache":"u","key":"k","savedAt":"2026-01-01T00:00:00Z","coder":"json",\
      "payloadSchemaVersion":1,"lifetime":{"fresh":60,"stale":0},"payload":"WzFd"}
      {"records":2}
      """
    let places = try TemporaryDirectory()
    _ = try Self.load(text, to: places.path("imported"), in: places)
    let clock = ManualClock(try Date("2026-01-01T00:01:15Z", strategy: .iso8601))
    let store = try Specimen.open(places.path("imported"), clock)
    let lifetime = Lifetime.fresh(for: .seconds(60), thenStaleFor: .seconds(30))
    let cache = try store.cache("c", of: [Int].self, lifetime: lifetime, coder: .json)
    guard case .stale(let entry) = try cache.lookup(for: "k") else {
      Issue.record("the entry is not stale")
      return
    }
    #expect(entry.value == [1])
    clock.set(clock.now() + 3600)
    #expect(try store.sweep() == 2, "one of them with a lifetime of its own")
    try store.close()
  }
}

// MARK: - Other sources

extension ExchangeTests {
  @Test("Files are imported by relative path, with the dates of their last changes.")
  func files() throws {
    let places = try TemporaryDirectory()
    let source = places.path("files")
    let manager = FileManager.default
    try manager.createDirectory(atPath: "\(source)/a/b", withIntermediateDirectories: true)
    try Data([1, 2]).write(to: URL(filePath: "\(source)/a/b/one"))
    try Data().write(to: URL(filePath: "\(source)/two words"))
    try Data([3]).write(to: URL(filePath: "\(source)/late"))
    try manager.createSymbolicLink(atPath: "\(source)/link", withDestinationPath: "late")
    let date = Specimen.now - 86_400
    for (name, date) in [("a/b/one", date), ("two words", date), ("late", Specimen.now + 1e6)] {
      try manager.setAttributes([.modificationDate: date], ofItemAtPath: "\(source)/\(name)")
    }
    let target = places.path("imported")
    let cache = try NewCache(name: "old", lifetime: "30", coder: "bytes")
    var report = ""
    #expect(
      try Inspection.importing(
        .files(source, cache: cache), to: target, now: Specimen.now, style: Style(.jsonl)
      ).write(to: &report) == .fine)
    #expect(report.contains("\"records\":3,"))
    let store = try Specimen.open(target)
    let old = try store.cache("old", of: Data.self, lifetime: .days(30), coder: .bytes)
    let entry = try #require(try old.entry(for: "a/b/one"))
    #expect(entry.value == Data([1, 2]))
    #expect(abs(entry.savedAt.timeIntervalSince(date)) < 1e-3)
    #expect(try old.value(for: "two words") == Data())
    #expect(try old.entry(for: "late")?.savedAt == Specimen.now, "a date in the future is now")
    try store.close()
    #expect(throws: InspectionError.self, "the target is in the source") {
      try Inspection.importing(
        .files(source, cache: cache), to: "\(source)/new", now: Specimen.now, style: Style()
      ).write(to: &report)
    }
  }

  @Test("The entries of a LevelDB database are imported, and the database is not touched.")
  func levelDB() throws {
    let places = try TemporaryDirectory()
    let source = places.path("database")
    let engine = try LevelDBEngine(at: source)
    var batch = WriteBatch()
    // The first bytes are those of a store's key spaces.
    let keys: [[UInt8]] = [[], [0x00], [0x10, 1, 2], [0x20, 1], Array("text".utf8)]
    for key in keys { batch.put(key.span.bytes, (key + [0xFF]).span.bytes) }
    try engine.write(&batch, synced: true)
    try engine.close()
    for name in ["LARDER", "LARDER.lock"] {
      try FileManager.default.removeItem(atPath: "\(source)/\(name)")
    }
    let before = try FileManager.default.contentsOfDirectory(atPath: source).sorted()
    let target = places.path("imported")
    let cache = try NewCache(name: "old", lifetime: "unlimited", coder: "bytes")
    var report = ""
    #expect(
      try Inspection.importing(
        .levelDB(source, cache: cache), to: target, now: Specimen.now, style: Style(.jsonl)
      ).write(to: &report) == .fine)
    #expect(try FileManager.default.contentsOfDirectory(atPath: source).sorted() == before)
    let store = try Specimen.open(target)
    let old = try store.cache(
      "old", of: [UInt8].self, keyedBy: [UInt8].self, lifetime: .unlimited, coder: .bytes)
    for key in keys { #expect(try old.value(for: key) == key + [0xFF]) }
    // And the row of the engine that made the database.
    #expect(try old.count() == keys.count + 1)
    try store.close()
    #expect(throws: InspectionError.self, "a store has an export of its own") {
      try Inspection.importing(
        .levelDB(target, cache: cache), to: nil, now: Specimen.now, style: Style()
      ).write(to: &report)
    }
  }

  @Test(
    "An unknown coder or lifetime of a new cache is refused.",
    arguments: [("7", "yaml"), ("-1", "bytes"), ("week", "json")])
  func newCache(lifetime: String, coder: String) {
    #expect(throws: InspectionError.self) {
      try NewCache(name: "c", lifetime: lifetime, coder: coder)
    }
  }

  @Test("The program exports to a pipe and imports from one.")
  func pipe() throws {
    let specimen = try Specimen()
    let temporary = try TemporaryDirectory()
    let exported = try Kvinspect(["export", specimen.path], temporary: temporary.path).finish()
    #expect(exported.status == 0)
    let file = temporary.path("export.jsonl")
    try exported.bytes.write(to: URL(filePath: file))
    let target = temporary.path("imported")
    let imported = try Kvinspect(["import", file, target], temporary: temporary.path).finish()
    #expect(imported.status == 0)
    #expect(imported.output.hasPrefix("10 records, "))
    #expect(try Self.differences(specimen.path, target) == Self.noDifference)
    let again = try Kvinspect(["import", file, target], temporary: temporary.path).finish()
    #expect(again.status == 64 && again.errors.contains("not an empty directory"))
    for wrong in [[file], ["--dry-run", file, target], ["--kind", "files", file, target]] {
      let refused = try Kvinspect(["import"] + wrong, temporary: temporary.path).finish()
      #expect(refused.status == 64, "\(wrong)")
    }
  }
}
