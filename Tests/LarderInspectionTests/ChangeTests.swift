import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import LarderTesting
import Testing

/// `remove` and `set`.
@Suite struct ChangeTests {
  private static func remove(
    _ key: String, _ cache: String? = nil, from specimen: Specimen, isDryRun: Bool = false
  ) throws -> String {
    var text = ""
    #expect(
      try Inspection.remove(
        key, cache: cache, from: specimen.path, in: isDryRun ? .dryRun : .files, now: Specimen.now,
        style: Style()
      ).write(to: &text) == .fine)
    return text
  }

  private static func set(
    _ json: String, for key: String, _ cache: String? = nil, in specimen: Specimen,
    schemaVersion: Int? = nil, savedAt: Date? = nil, isForced: Bool = false
  ) throws -> String {
    var text = ""
    let value = NewValue(
      json: Array(json.utf8), schemaVersion: schemaVersion, savedAt: savedAt, isForced: isForced)
    #expect(
      try Inspection.set(
        value, for: key, cache: cache, in: specimen.path, now: Specimen.now, style: Style()
      ).write(to: &text) == .fine)
    return text
  }

  private static func status(of body: () throws -> Void) -> Outcome? {
    do {
      try body()
      return nil
    } catch {
      return (error as? InspectionError)?.status
    }
  }

  private static func expectNoProblems(in specimen: Specimen) throws {
    var text = ""
    let status = try specimen.inspect().verify(style: Style()).write(to: &text)
    #expect(status == .fine, "\(text)")
  }

  @Test("A command that changes something refuses CSV, and changes nothing.")
  func refusedFormat() throws {
    let specimen = try Specimen()
    let (path, csv) = (specimen.path, Style(.csv))
    let target = specimen.directory.path("target")
    let backup = specimen.directory.path("backup")
    var text = ""
    _ = try specimen.inspect().backup(to: backup, style: Style()).write(to: &text)
    let value = NewValue(json: [0x31], schemaVersion: nil, savedAt: nil, isForced: true)
    let commands: [() throws -> Report] = [
      {
        try Inspection.remove(
          "stale", cache: nil, from: path, in: .files, now: Specimen.now, style: csv)
      },
      {
        try Inspection.set(
          value, for: "stale", cache: nil, in: path, now: Specimen.now, style: csv)
      },
      { try Inspection.sweep(path, now: Specimen.now + 20 * 86_400, style: csv) },
      { try Inspection.compact(path, style: csv) },
      { try specimen.inspect().backup(to: target, style: csv) },
      { try Inspection.restore(backup, to: target, style: csv) },
      { try Inspection.repair(path, to: target, style: csv) },
    ]
    func contents() throws -> [String: Data?] {
      let manager = FileManager.default
      let names = try manager.subpathsOfDirectory(atPath: specimen.directory.path)
      return Dictionary(
        uniqueKeysWithValues: names.map {
          ($0, manager.contents(atPath: specimen.directory.path($0)))
        })
    }
    let before = try contents()
    for (index, command) in commands.enumerated() {
      let status = Self.status { _ = try command().write(to: &text) }
      #expect(status == .usage, "command \(index)")
      #expect(try contents() == before, "command \(index)")
    }
  }

  @Test("`remove` removes one record, and a dry run removes none.")
  func removal() throws {
    let specimen = try Specimen()
    let before = try specimen.inspect().listReport(Selection(), Style(.csv)).text
    #expect(try Self.remove("stale", from: specimen, isDryRun: true).contains("would be removed"))
    #expect(try specimen.inspect().listReport(Selection(), Style(.csv)).text == before)
    #expect(try Self.remove("stale", from: specimen).contains("stale of cache genres: removed"))
    #expect(try Self.remove("-7", "lists", from: specimen).contains("removed"))
    let after = try specimen.inspect().listReport(Selection(), Style(.csv)).text
    let lost = Set(before.split(separator: "\n")).subtracting(after.split(separator: "\n"))
    #expect(lost.count == 2 && lost.contains { $0.contains("genres,stale") })
    #expect(lost.contains { $0.contains("lists,-7") })
    #expect(Self.status { _ = try Self.remove("stale", from: specimen) } == .notFound)
    #expect(Self.status { _ = try Self.remove("x", "lists", from: specimen) } == .usage)
    #expect(Self.status { _ = try Self.remove("x", "none", from: specimen) } == .notFound)
    try Self.expectNoProblems(in: specimen)
  }

  @Test("A damaged record can be removed.")
  func damaged() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.flipByte(from: [0x10], ending: "damaged") }
    _ = try Self.remove("damaged", from: specimen)
    try Self.expectNoProblems(in: specimen)
  }

  @Test("Removals and new values change the byte count of a cache with a budget.")
  func counted() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache(
      "counted", of: String.self, lifetime: .unlimited, byteBudget: 10_000)
    for key in ["a", "b"] { try cache.save(String(repeating: key, count: 100), for: key) }
    try store.close()
    _ = try Self.remove("a", "counted", from: specimen)
    try Self.expectNoProblems(in: specimen)
    _ = try Self.set(
      "\"\(String(repeating: "c", count: 3000))\"", for: "c", "counted", in: specimen)
    try Self.expectNoProblems(in: specimen)
    // It can be evicted like a value that was saved.
    let again = try Specimen.open(specimen.path)
    let same = try again.cache(
      "counted", of: String.self, lifetime: .unlimited, byteBudget: 10_000)
    for index in 0..<200 {
      try same.save(String(repeating: "d", count: 100), for: "d\(index)")
    }
    #expect(try same.value(for: "c") == nil)
    try again.close()
  }

  @Test("`set` keeps the lifetime and the tags of an entry, and drops its validator.")
  func kept() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let numbers = try store.cache("numbers", of: [Int].self, lifetime: .unlimited)
    try numbers.save(
      [1], for: "k", lifetime: .seconds(600), validator: "etag", tags: ["a", "\u{E9}"])
    try store.close()
    let saved = Specimen.now - 60
    #expect(
      try Self.set("[2, 3]", for: "k", in: specimen, savedAt: saved)
        .contains("k of cache numbers: set, encoded in JSON, 6 B"))
    try Self.expectNoProblems(in: specimen)
    let again = try Specimen.open(specimen.path)
    let same = try again.cache("numbers", of: [Int].self, lifetime: .unlimited)
    let entry = try #require(try same.entry(for: "k"))
    #expect(entry.value == [2, 3] && entry.savedAt == saved)
    #expect(entry.lifetime == .seconds(600) && entry.tags == ["a", "\u{E9}"])
    #expect(entry.validator == nil)
    try again.invalidate(tag: "a")
    #expect(try same.value(for: "k") == nil)
    try again.close()
    // A value that is set after its tag was invalidated is there again, as a saved one would be.
    _ = try Self.set("[4]", for: "k", in: specimen)
    let last = try Specimen.open(specimen.path)
    #expect(try last.cache("numbers", of: [Int].self, lifetime: .unlimited).value(for: "k") == [4])
    try last.close()
  }

  /// A row: a value that is there, a new one, and the difference that is named; nil if it is set.
  struct ShapeRow: Sendable, CustomTestStringConvertible {
    let old: String
    let new: String
    let difference: String?
    var testDescription: String { "\(old) to \(new)" }

    init(_ old: String, _ new: String, _ difference: String? = nil) {
      (self.old, self.new, self.difference) = (old, new, difference)
    }
  }

  static let shapeRows = [
    ShapeRow(#"{"size":"large"}"#, #"{"size":1}"#, ".size is an integer in place of a string"),
    ShapeRow(#"{"size":"large"}"#, #"{"size":"small"}"#),
    ShapeRow(#"{"a":1,"b":2}"#, #"{"a":1}"#, "the value has no member b"),
    ShapeRow(#"{"a":1}"#, #"{"a":1,"b":2}"#, "the value has a new member b"),
    ShapeRow(#"{"a":null}"#, #"{"a":[true]}"#),
    ShapeRow(#"{"a":1}"#, #"{"a":null}"#, ".a is null in place of an integer"),
    ShapeRow("1", "1.5", "the value is a number with a fraction in place of an integer"),
    ShapeRow("1.5", "1"), ShapeRow("1.5", "2.5e3"),
    ShapeRow("[1]", "[]"), ShapeRow("[]", #"["a",1]"#), ShapeRow(#"[1,"a"]"#, #"["b",2,3]"#),
    ShapeRow("[1]", #"[1,"a"]"#, "[] is a string in place of an integer"),
    ShapeRow(#"[{"a":1},{"a":2,"b":true}]"#, #"[{"a":3}]"#),
    ShapeRow(#"[{"a":1},{"a":2}]"#, #"[{"b":3}]"#, "[] has no member a"),
    ShapeRow(#"{"a":{"b":[[1]]}}"#, #"{"a":{"b":[["x"]]}}"#, ".a.b[][] is a string"),
    ShapeRow("true", "0", "the value is an integer in place of true or false"),
    ShapeRow("{}", "[]", "the value is a list in place of an object"),
  ]

  @Test("`set` refuses a value of another shape, unless it is forced.", arguments: shapeRows)
  func shapes(row: ShapeRow) throws {
    let specimen = try Specimen()
    func set(_ json: String, isForced: Bool, _ style: Style = Style()) throws {
      var text = ""
      let value = NewValue(
        json: Array(json.utf8), schemaVersion: nil, savedAt: nil, isForced: isForced)
      _ = try Inspection.set(
        value, for: "fresh", cache: nil, in: specimen.path, now: Specimen.now, style: style
      ).write(to: &text)
    }
    try set(row.old, isForced: true)
    guard let difference = row.difference else { return try set(row.new, isForced: false) }
    let error = #expect(throws: InspectionError.self) { try set(row.new, isForced: false) }
    #expect(error?.status == .usage)
    #expect(error?.description.contains(difference) == true, "\(error?.description ?? "")")
    #expect(error?.description.contains("--force") == true)
    var redacted = Style()
    redacted.isRedacted = true
    let quiet = #expect(throws: InspectionError.self) {
      try set(row.new, isForced: false, redacted)
    }
    #expect(quiet?.description.contains(".size") == false)
    let payload = try specimen.inspect().payload(of: "fresh", cache: nil, keys: .auto).bytes
    #expect(payload == Array(row.old.utf8))
    try set(row.new, isForced: true)
  }

  @Test("`set` compares a value with what each coder has written.")
  func shapesOfCoders() throws {
    struct Item: Codable, Equatable {
      var date = Date(timeIntervalSinceReferenceDate: 0.5)
      var count = 1
      var ratio = 1.0
      var data = Data([1])
      var id: UUID? = Specimen.uuid
    }
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let coders: [(String, Coder<Item>)] = [
      ("binary", .binary), ("propertyList", .propertyList), ("json", .json),
    ]
    for (name, coder) in coders {
      try store.cache(name, of: Item.self, coder: coder).save(Item(), for: "k")
    }
    try store.cache("raw", of: Data.self, coder: .bytes).save(Data([1]), for: "k")
    try store.close()
    let item = Item(date: .distantPast, count: 2, ratio: 3, data: Data([4]), id: UUID())
    let json = String(decoding: try JSONEncoder().encode(item), as: UTF8.self)
    for (name, _) in coders {
      _ = try Self.set(json, for: "k", name, in: specimen)
      let other = json.replacing("\"count\":2", with: "\"count\":\"2\"")
      #expect(Self.status { _ = try Self.set(other, for: "k", name, in: specimen) } == .usage)
    }
    _ = try Self.set("\"AQI=\"", for: "k", "raw", in: specimen)
    #expect(Self.status { _ = try Self.set("{}", for: "k", "raw", in: specimen) } == .usage)
    let again = try Specimen.open(specimen.path)
    for (name, coder) in coders {
      #expect(try again.cache(name, of: Item.self, coder: coder).value(for: "k") == item)
    }
    #expect(try again.cache("raw", of: Data.self, coder: .bytes).value(for: "k") == Data([1, 2]))
    try again.close()
  }

  @Test("`set` needs a JSON document, a key and a schema version of the cache.")
  func refused() throws {
    let specimen = try Specimen()
    func status(_ json: String, _ key: String, _ cache: String?, _ schema: Int? = nil) -> Outcome? {
      Self.status {
        _ = try Self.set(json, for: key, cache, in: specimen, schemaVersion: schema)
      }
    }
    let before = try specimen.inspect().listReport(Selection(), Style(.csv)).text
    #expect(status("{", "fresh", nil) == .usage)
    #expect(status("", "fresh", nil) == .usage)
    let deep = String(repeating: "[", count: 200) + String(repeating: "]", count: 200)
    #expect(status(deep, "fresh", nil) == .usage)
    #expect(status("1", "new", nil) == .notFound, "a new key needs a cache")
    #expect(status("1", "new", "none") == .notFound)
    #expect(status("1", "seven", "lists") == .usage)
    #expect(status("1", "fresh", nil, 2) == .usage, "no program knows this version")
    #expect(status("1", "fresh", nil, -1) == .usage)
    #expect(try specimen.inspect().listReport(Selection(), Style(.csv)).text == before)
    let user = Specimen.uuid.uuidString
    _ = try Self.set(
      "{\"name\":\"n\"}", for: user, "users", in: specimen, schemaVersion: 1, isForced: true)
    #expect(try specimen.inspect().getReport(user).text.contains("version 1\n"))
  }

  @Test("A store that is open is not changed.")
  func open() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    #expect(Self.status { _ = try Self.remove("fresh", from: specimen) } == .unavailable)
    let setting = Self.status {
      _ = try Self.set("1", for: "fresh", in: specimen, isForced: true)
    }
    #expect(setting == .unavailable)
    #expect(try Self.remove("fresh", from: specimen, isDryRun: true).contains("would be"))
    try store.close()
  }

  @Test("The program changes a store only with --write.")
  func program() throws {
    let specimen = try Specimen()
    let temporary = try TemporaryDirectory()
    func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
      let result = try Kvinspect(arguments, temporary: temporary.path).finish()
      return (result.status, result.output)
    }
    #expect(try run(["remove", specimen.path, "fresh"]).status == 64)
    #expect(try run(["remove", specimen.path, "fresh", "--write", "--dry-run"]).status == 64)
    #expect(try run(["set", specimen.path, "fresh", "--value", "1"]).status == 64)
    #expect(try run(["get", specimen.path, "fresh", "--quiet"]).status == 0)
    let json = "{\"name\":\"new\",\"tags\":[],\"year\":1,\"ratio\":2}"
    #expect(
      try run(["set", specimen.path, "fresh", "--value", json, "--saved-at", "-90s", "--write"])
        .status == 0)
    #expect(try run(["get", specimen.path, "fresh"]).output.contains("1m 30s ago"))
    #expect(try run(["remove", specimen.path, "-7", "--write"]).status == 0)
    #expect(try run(["get", specimen.path, "-7"]).status == 2)
  }
}
