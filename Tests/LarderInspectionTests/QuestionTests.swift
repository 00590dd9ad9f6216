import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import LarderTesting
import Testing

/// The reports of `top`, `stats`, `prefixes` and `why`.
@Suite struct QuestionTests {
  let specimen: Specimen
  let inspection: Inspection

  init() throws {
    specimen = try Specimen.withFaults()
    inspection = try specimen.inspect()
  }

  private var masks: [(String, String)] { [(specimen.path, "STORE")] }

  private static func style(_ format: ReportFormat = .table, width: Int? = nil) -> Style {
    var style = Style(format)
    style.width = width
    return style
  }

  // MARK: - ls and top

  /// The keys of a list, in its order.
  private func keys(_ change: (inout Selection) -> Void) throws -> [String] {
    var selection = Selection()
    change(&selection)
    return try inspection.keys(selection).map(\.key)
  }

  @Test("`ls --sort` lists the largest, the oldest or the next to expire first.")
  func sorted() throws {
    let bySize = try keys { $0.order = .size }
    #expect(bySize.count == 10)
    #expect(bySize.last == "0x00ff")
    #expect(try keys { ($0.order, $0.isReversed) = (.size, true) }.first == "0x00ff")
    #expect(try keys { ($0.order, $0.limit) = (.size, 3) } == Array(bySize.prefix(3)))

    let byAge = try keys { ($0.order, $0.states) = (.age, [.fresh, .stale, .expired]) }
    #expect(byAge.prefix(3) == ["expired", "stale", "fresh"])
    // Records that cannot be read have no date.
    #expect(try Set(keys { $0.order = .age }.suffix(2)) == ["damaged", "0x74776f0a6c696e6573"])
    let youngest = try keys { ($0.order, $0.isReversed) = (.age, true) }
    #expect(Set(youngest.suffix(2)) == ["damaged", "0x74776f0a6c696e6573"])
    #expect(youngest[7] == "expired")

    let byTTL = try keys { ($0.order, $0.states) = (.ttl, [.fresh, .stale]) }
    #expect(Set(byTTL.prefix(2)) == ["0x00ff", "0x"])
    #expect(byTTL.last == Specimen.uuid.uuidString)
  }

  @Test("A list that is cut to its limit many times holds the right records.")
  func ranked() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("sizes", of: [UInt8].self, keyedBy: Int.self, coder: .bytes)
    var random = SplitMix64(seed: 5)
    let sizes = (0..<5000).map { _ in Int(random.next() % 10_000) }
    for (key, size) in sizes.enumerated() {
      try cache.save([UInt8](repeating: 1, count: size), for: key)
    }
    try store.close()
    var selection = Selection()
    selection.cache = "sizes"
    selection.order = .size
    selection.limit = 700
    // Keys of 1 and 2 bytes differ by less than the sizes that are compared.
    let expected = sizes.sorted(by: >).prefix(700)
    let listed = try specimen.inspect().keys(selection).map { sizes[try #require(Int($0.key))] }
    #expect(listed.count == 700)
    for (size, other) in zip(listed, expected) { #expect(abs(size - other) <= 8) }
  }

  @Test("`ls --state` lists the records in these states.")
  func states() throws {
    #expect(try keys { $0.states = [.stale] } == ["stale"])
    #expect(try keys { $0.states = [.expired, .damaged] } == ["damaged", "expired"])
    var selection = Selection()
    (selection.states, selection.limit) = ([.fresh], 1)
    #expect(try inspection.listReport(selection).0.contains("fresh"))
    selection.states = [.expired]
    let fine = try Specimen().inspect()
    #expect(try fine.listReport(selection).status == .fine)
  }

  @Test("Tables fit into the width of a terminal.", arguments: [80, 120])
  func widths(width: Int) throws {
    let long = try Specimen()
    let store = try Specimen.open(long.path)
    let cache = try store.cache("addresses", of: Int.self)
    for number in [1, 20_000] {
      let path = String(repeating: "a-long-directory/", count: 12)
      try cache.save(number, for: "https://example.com/\(path)\(number).jpg")
    }
    try store.close()
    var selection = Selection()
    selection.cache = "addresses"
    let inspection = try long.inspect()
    let text = try inspection.listReport(selection, Self.style(width: width)).text
    let rows = text.split(separator: "\n").dropFirst()
    #expect(rows.count == 3 && rows.allSatisfy { $0.count <= width })
    #expect(rows.dropFirst().allSatisfy { $0.count == width })
    #expect(text.contains("20000.jpg") && text.contains("..."))
    // The whole key when piped.
    let whole = try inspection.listReport(selection).text
    #expect(whole.contains(String(repeating: "a-long-directory/", count: 12) + "20000.jpg"))
    let other = try self.inspection.listReport(Selection(), Self.style(width: width)).text
    try expectSnapshot(other, named: "ls.\(width)", masking: masks)
  }

  @Test("Colours tell states apart, and only where they are wanted.")
  func colors() throws {
    var style = Self.style()
    #expect(try !inspection.listReport(Selection(), style).text.contains("\u{1B}"))
    style.isColored = true
    let text = try inspection.listReport(Selection(), style).text
    for state in ["32mfresh", "33mstale", "2mexpired", "31mdamaged"] {
      #expect(text.contains("\u{1B}[\(state)\u{1B}[0m"))
    }
    style.format = .jsonl
    #expect(try !inspection.listReport(Selection(), style).text.contains("\u{1B}"))
  }

  // MARK: - stats and prefixes

  @Test(
    "`stats` shows numbers and sizes by cache and schema version.",
    arguments: ReportFormat.allCases)
  func stats(format: ReportFormat) throws {
    var text = ""
    let status = try inspection.statistics(of: Selection(), style: Self.style(format)).write(
      to: &text)
    #expect(status == .damaged)
    // LevelDB may compress the members of JSON in another order to another size.
    text.replace(/files    .*/, with: "files    SIZE")
    text.replace(/, .* of the files/, with: ", SHARE of the files")
    text.replace(/"fileBytes": [0-9]+/, with: "\"fileBytes\": SIZE")
    try expectSnapshot(text, named: "stats.\(format)", masking: masks)
  }

  @Test("`stats` says how many bytes of segments are values of the entries.")
  func segments() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    var text = ""
    let report = try specimen.inspect().statistics(of: Selection(), style: Style())
    #expect(try report.write(to: &text) == .fine)
    #expect(text.contains(/\nsegments [0-9.]+ K?B, [0-9.]+ % of them values of these entries\n/))
    let store = try Specimen.open(specimen.path)
    try store.drop(cache: "genres")
    try store.close()
    var after = ""
    let later = try specimen.inspect().statistics(of: Selection(), style: Style())
    #expect(try later.write(to: &after) == .fine)
    func share(_ text: String) throws -> Double {
      let found = try #require(text.firstMatch(of: /, ([0-9.]+) % of them values/))
      return try #require(Double(found.1))
    }
    #expect(try share(text) > 50)
    #expect(try share(after) < share(text) - 20)
  }

  @Test("`stats` computes exact quantiles.")
  func quantiles() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("sizes", of: [UInt8].self, keyedBy: Int.self, coder: .bytes)
    for size in 1...200 { try cache.save([UInt8](repeating: 1, count: size), for: size) }
    try store.close()
    var selection = Selection()
    selection.cache = "sizes"
    var text = ""
    let inspection = try specimen.inspect()
    let status = try inspection.statistics(of: selection, style: Self.style(.csv)).write(to: &text)
    #expect(status == .fine)
    let bytes = 200 * 36 + 200 * 201 / 2
    #expect(text.hasSuffix(",1,200,\(200 * 10),\(bytes),136,234,236\n"), "\(text)")
  }

  @Test("`prefixes` adds up keys that begin alike, the largest first.")
  func prefixes() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("paths", of: [UInt8].self, coder: .bytes)
    for (key, size) in [
      ("user/1/photo", 500), ("user/1/name", 10), ("user/2/photo", 900), ("post:7", 100),
      ("alone", 5), ("user/3/photo", 20), ("http://host:80/a", 1),
    ] {
      try cache.save([UInt8](repeating: 1, count: size), for: key)
    }
    try store.close()
    var selection = Selection()
    selection.cache = "paths"
    let inspection = try specimen.inspect()
    func report(_ format: ReportFormat, limit: Int = 20, depth: Int = 2) throws -> String {
      var text = ""
      let status = try inspection.prefixes(
        of: selection, delimiters: ["/", ":"], depth: depth, limit: limit,
        style: Self.style(format)
      ).write(to: &text)
      #expect(status == .fine)
      return text
    }
    func bytes(_ keys: (String, Int)...) -> Int {
      keys.reduce(0) { $0 + 2 + $1.0.utf8.count + 36 + $1.1 }
    }
    let lines = try report(.csv).split(separator: "\n").map(String.init)
    let users = bytes(
      ("user/1/photo", 500), ("user/1/name", 10), ("user/2/photo", 900), ("user/3/photo", 20))
    let post = bytes(("post:7", 100))
    #expect(
      lines == [
        "cache,prefix,others,records,bytes",
        "paths,,,7,\(users + post + bytes(("alone", 5), ("http://host:80/a", 1)))",
        "paths,user/,,4,\(users)",
        "paths,user/2/,,1,\(bytes(("user/2/photo", 900)))",
        "paths,user/1/,,2,\(bytes(("user/1/photo", 500), ("user/1/name", 10)))",
        "paths,user/3/,,1,\(bytes(("user/3/photo", 20)))",
        "paths,post:,,1,\(post)",
        "paths,http://,,1,\(bytes(("http://host:80/a", 1)))",
        "paths,http://host:,,1,\(bytes(("http://host:80/a", 1)))",
      ])
    let cut = try report(.csv, limit: 1).split(separator: "\n").map(String.init)
    #expect(cut.count == 6)
    #expect(cut[4].hasPrefix("paths,user/,2,3,"))
    #expect(cut[5] == "paths,,2,2,\(post + bytes(("http://host:80/a", 1)))")
    #expect(try report(.csv, depth: 1).split(separator: "\n").count == 5)
    try expectSnapshot(
      try report(.table), named: "prefixes.table", masking: [(specimen.path, "STORE")])
    var style = Self.style()
    style.isRedacted = true
    var text = ""
    #expect(throws: InspectionError.self) {
      try inspection.prefixes(
        of: selection, delimiters: ["/"], depth: 1, limit: 1, style: style
      ).write(to: &text)
    }
    #expect(text.isEmpty)
  }

  // MARK: - why

  @Test(
    "`why` tells what a read returns, and why.",
    arguments: [
      ("fresh", Outcome.fine), ("stale", .fine), ("expired", .fine), ("damaged", .damaged),
      ("0x74776f0a6c696e6573", .unsupported), ("42", .fine), ("absent", .notFound),
      (Specimen.uuid.uuidString, .fine),
    ])
  func why(key: String, outcome: Outcome) throws {
    var text = ""
    let status = try inspection.why(key, cache: nil, style: Self.style()).write(to: &text)
    #expect(status == outcome)
    try expectSnapshot(text, named: "why.\(key)", masking: masks)
  }

  @Test("`why` names the tag that ended an entry, and a cleared cache that had the key.")
  func ended() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let sessions = try store.cache("sessions", of: Int.self)
    try sessions.save(1, for: "k", tags: ["red", "blue"])
    try store.invalidate(tag: "red")
    try store.close()
    var text = ""
    var inspection = try specimen.inspect()
    #expect(try inspection.why("k", cache: nil, style: Self.style()).write(to: &text) == .fine)
    #expect(text.contains("because    a tag was invalidated after the save: red (sequence "))
    #expect(text.contains("answer     `value(for:)` returns nil"))
    #expect(!text.contains("blue"))
    var redacted = Self.style()
    redacted.isRedacted = true
    text = ""
    _ = try inspection.why("k", cache: nil, style: redacted).write(to: &text)
    #expect(!text.contains("red (") && text.contains("(redacted)"))

    // A killed process leaves the rows of a cache that it has cleared.
    var id: UInt8?
    try specimen.withEngine { engine in
      id = try engine.keys(from: [0x10]).first { $0.last == UInt8(ascii: "k") }?[1]
    }
    try specimen.put(
      [], under: Metadata.reclaimPrefix + [0, 0, 0, 0, 0, 0, 0, try #require(id)])
    inspection = try specimen.inspect()
    text = ""
    #expect(try inspection.why("k", cache: nil, style: Self.style()).write(to: &text) == .notFound)
    #expect(text.contains("a cache that was cleared or dropped had it"), "\(text)")
  }

  @Test("`why` tells where a payload lies.")
  func place() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    var text = ""
    #expect(
      try specimen.inspect().why("fresh", cache: nil, style: Self.style()).write(to: &text) == .fine
    )
    #expect(text.contains("place      00000001.segment at byte "), "\(text)")
  }
}
