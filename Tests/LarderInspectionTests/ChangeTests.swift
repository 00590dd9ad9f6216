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
        key, cache: cache, from: specimen.path, isDryRun: isDryRun, now: Specimen.now,
        style: Style(), to: &text) == .fine)
    return text
  }

  private static func set(
    _ json: String, for key: String, _ cache: String? = nil, in specimen: Specimen,
    schemaVersion: Int? = nil, savedAt: Date? = nil
  ) throws -> String {
    var text = ""
    let value = NewValue(json: Array(json.utf8), schemaVersion: schemaVersion, savedAt: savedAt)
    #expect(
      try Inspection.set(
        value, for: key, cache: cache, in: specimen.path, now: Specimen.now, style: Style(),
        to: &text) == .fine)
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
    let status = try specimen.inspect().verify(style: Style(), to: &text)
    #expect(status == .fine, "\(text)")
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
    #expect(status("{\"name\":\"n\"}", user, "users", 1) == nil, "an older version")
    #expect(try specimen.inspect().getReport(user).text.contains("version 1\n"))
  }

  @Test("A store that is open is not changed.")
  func open() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    #expect(Self.status { _ = try Self.remove("fresh", from: specimen) } == .unavailable)
    #expect(Self.status { _ = try Self.set("1", for: "fresh", in: specimen) } == .unavailable)
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
