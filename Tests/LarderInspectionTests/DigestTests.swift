import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// `digest`: equal for stores with the same entries, and for no others.
@Suite struct DigestTests {
  private static func digest(
    _ path: String, _ selection: Selection = Selection(), _ style: Style = Style(.csv)
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try Inspection(at: path, now: Specimen.now)
      .digest(of: selection, style: style).write(to: &text)
    return (text, status)
  }

  @Test(
    "The digest is FNV-1a with 128 bits, as its authors publish it.",
    arguments: [
      ("", "6c62272e07bb014262b821756295c58d"), ("a", "d228cb696f1a8caf78912b704e4a8964"),
      ("foobar", "343e1662793c64bf6f0d3597ba446f18"),
    ])
  func vectors(text: String, expected: String) {
    var digest = Digest()
    for character in text { digest.write("\(character)") }
    #expect(digest.text == expected)
  }

  @Test("The digest of a cache is that of its lines in an export.")
  func definition() throws {
    let specimen = try Specimen()
    var exported = ""
    var selection = Selection()
    selection.cache = "genres"
    _ = try specimen.inspect().export(selection, style: Style(), to: &exported)
    var digest = Digest()
    for line in exported.split(separator: "\n") where line.contains("\"savedAt\"") {
      digest.write(line + "\n")
    }
    var total = Digest()
    total.write(digest.text)
    let (text, status) = try Self.digest(specimen.path, selection)
    #expect(text == "digest,records,cache\n\(digest.text),5,genres\n\(total.text),5,\n")
    #expect(status == .fine)
  }

  @Test("An imported, a compacted and a restored store have the digest of their original.")
  func copies() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    try ExchangeTests.addUnusualEntries(to: specimen.path)
    let expected = try Self.digest(specimen.path)
    #expect(expected.status == .fine)
    let places = try TemporaryDirectory()
    let (file, imported) = (places.path("export.jsonl"), places.path("imported"))
    var text = ""
    _ = try specimen.inspect().export(Selection(), style: Style(), to: &text)
    try Data(text.utf8).write(to: URL(filePath: file))
    var report = ""
    _ = try Inspection.importing(
      .lines(file), to: imported, now: Specimen.now, style: Style()
    ).write(to: &report)
    #expect(try Self.digest(imported) == expected)
    _ = try specimen.inspect().backup(to: places.path("backup"), style: Style()).write(to: &report)
    #expect(try Self.digest(places.path("backup")) == expected)
    _ = try Inspection.compact(specimen.path, style: Style()).write(to: &report)
    #expect(try Self.digest(specimen.path) == expected)
  }

  @Test("The order in which caches are made and entries are saved does not count.")
  func order() throws {
    let directory = try TemporaryDirectory()
    func store(_ name: String, _ steps: [(cache: String, key: String)]) throws -> String {
      let store = try Specimen.open(directory.path(name))
      // An empty cache is not an entry.
      _ = try store.cache("empty \(name)", of: String.self)
      for (cache, key) in steps {
        try store.cache(cache, of: String.self).save("value of \(key)", for: key)
      }
      try store.close()
      return try Self.digest(directory.path(name)).text
    }
    let entries = [("a", "k"), ("b", "k"), ("a", "l"), ("z", "m")]
    let first = try store("first", entries)
    #expect(try store("second", entries.reversed() + [("a", "k")]) == first)
    #expect(try store("third", Array(entries.dropLast())) != first)
    // The same keys in other caches.
    #expect(try store("fourth", [("b", "k"), ("a", "k"), ("b", "l"), ("z", "m")]) != first)
  }

  enum Change: CaseIterable {
    case value, date, lifetime, validator, tags, schema, key
  }

  @Test("Every part of a record counts.", arguments: Change.allCases)
  func parts(change: Change) throws {
    let directory = try TemporaryDirectory()
    func digest(_ name: String, _ change: Change?) throws -> String {
      let clock = ManualClock(Specimen.now)
      let store = try Specimen.open(directory.path(name), clock)
      let cache = try store.cache(
        "c", of: String.self, schema: Schema(version: change == .schema ? 2 : 1))
      if change == .date { clock.advance(by: .nanoseconds(200)) }
      try cache.save(
        change == .value ? "w" : "v", for: change == .key ? "l" : "k",
        lifetime: .days(change == .lifetime ? 2 : 1),
        validator: Validator([change == .validator ? 1 : 0]),
        tags: change == .tags ? ["a", "b"] : ["a"])
      try store.close()
      return try Self.digest(directory.path(name)).text
    }
    #expect(try digest("same", nil) == digest("other", nil))
    #expect(try digest("changed", change) != digest("again", nil))
  }

  @Test("What cannot be read is counted, and the exit code says so.")
  func faults() throws {
    let specimen = try Specimen.withFaults()
    let (text, status) = try Self.digest(specimen.path, Selection(), Style())
    #expect(status == .damaged)
    #expect(text.contains("\nrecords  8\nleft out 2, which cannot be read\n"), "\(text)")
    let quiet = try Self.digest(
      specimen.path, Selection(),
      {
        var style = Style()
        style.isQuiet = true
        return style
      }())
    #expect(quiet.text.count == 33 && text.contains("\ndigest   \(quiet.text)"))
  }

  @Test("The report has each format.")
  func formats() throws {
    let specimen = try Specimen()
    for format in [ReportFormat.table, .json, .jsonl] {
      // The order of the members of a payload in JSON differs from run to run.
      let text = try Self.digest(specimen.path, Selection(), Style(format)).text
        .replacing(/[0-9a-f]{32}/, with: String(repeating: "d", count: 32))
      try expectSnapshot(
        text,
        named: "digest.\(format.rawValue)", masking: [(specimen.path, "STORE")])
    }
  }
}
