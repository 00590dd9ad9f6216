import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// A selection matches the expected records, and every printed key is accepted as an argument.
@Suite struct SelectionTests {
  private func keys(
    _ inspection: Inspection, _ change: (inout Selection) -> Void
  ) throws -> [String] {
    var selection = Selection()
    change(&selection)
    return try inspection.keys(selection).map { "\($0.cache)/\($0.key)" }
  }

  @Test("Records are selected by cache, range, pattern and number.")
  func selections() throws {
    let specimen = try Specimen()
    let inspection = try specimen.inspect()
    let odd = "genres/0x74776f0a6c696e6573"
    let genres = ["genres/damaged", "genres/expired", "genres/fresh", "genres/stale", odd]

    #expect(try keys(inspection) { $0.cache = "genres" } == genres)
    #expect(try keys(inspection) { $0.cache = "#1" } == genres)
    #expect(try keys(inspection) { $0.prefix = "st" } == ["genres/stale"])
    #expect(
      try keys(inspection) { ($0.cache, $0.from, $0.to) = ("genres", "expired", "stale") }
        == ["genres/expired", "genres/fresh"])
    #expect(
      try keys(inspection) { ($0.cache, $0.from) = ("lists", "-7") }
        == ["lists/-7", "lists/42"])
    #expect(try keys(inspection) { ($0.cache, $0.to) = ("lists", "0") } == ["lists/-7"])
    #expect(
      try keys(inspection) { $0.match = "*e[!x]*e" } == ["genres/stale"].filter { _ in false })
    #expect(try keys(inspection) { $0.match = "?res*" } == ["genres/fresh"])
    #expect(
      try keys(inspection) { $0.leastAge = 8 * 86_400 } == ["genres/expired", "genres/stale"])
    #expect(try keys(inspection) { $0.leastAge = 31 * 86_400 + 1 } == [])
    let sizes = try [1, 60, 100, 1000].map { size in
      try keys(inspection) { $0.leastBytes = size }.count
    }
    #expect(sizes == [10, 9, 7, 0])
    #expect(try keys(inspection) { $0.limit = 2 } == ["genres/damaged", "genres/expired"])
    #expect(try keys(inspection) { $0.limit = 0 } == [])
    let all = try keys(inspection) { _ in }
    #expect(try keys(inspection) { $0.isReversed = true } == all.reversed())
    #expect(all.count == 10)
  }

  @Test("A scan goes on where a limit ended one, in both directions, over all caches.")
  func places() throws {
    let inspection = try Specimen().inspect()
    for isReversed in [false, true] {
      let all = try keys(inspection) { $0.isReversed = isReversed }
      for limit in 1...4 {
        var (selection, found) = (Selection(), [String]())
        (selection.isReversed, selection.scanLimit) = (isReversed, limit)
        repeat {
          let end = try inspection.forEachItem(in: selection, keys: .auto) { item in
            if case .record(let record) = item {
              let key = KeyForm.auto.text(of: record.key, kind: record.cache.keyKind)
              found.append("\(record.cache.label)/\(key)")
            }
            return true
          }
          #expect(end.keys <= limit && (end.next != nil || end.share == nil))
          selection.start = end.next
        } while selection.start != nil
        #expect(found == all)
      }
    }
  }

  @Test(
    "Sizes and spans are read as people write them, and nothing else is.",
    arguments: [
      ("500", 500, nil), ("20KB", 20_000, nil), ("1.5 mb", 1_500_000, nil), ("0B", 0, nil),
      ("7d", nil, 604_800), ("90s", nil, 90), ("2w", nil, 1_209_600), ("", nil, nil),
      ("-1", nil, nil), ("1e3", nil, nil), ("KB", nil, nil), ("9999999999TB", nil, nil),
      ("1.2.3", nil, nil), ("7", 7, nil), ("d", nil, nil), ("1.5d", nil, nil),
    ] as [(String, Int?, Double?)])
  func amounts(text: String, bytes: Int?, seconds: Double?) {
    #expect(Amount.bytes(of: text) == bytes)
    #expect(Moment.seconds(ofSpan: text) == seconds)
  }

  @Test("A bound that is not a key of the given cache is refused.")
  func invalidBound() throws {
    let specimen = try Specimen()
    let inspection = try specimen.inspect()

    #expect { try keys(inspection) { ($0.cache, $0.from) = ("lists", "x") } } throws: {
      outcome(of: $0) == .usage
    }
    #expect(try keys(inspection) { $0.prefix = "dam" } == ["genres/damaged"])
  }

  @Test("Cleared caches have no records.")
  func clearedCaches() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let genres = try store.cache(
      "genres", of: Specimen.Title.self,
      lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)))
    try genres.removeAll()
    try genres.save(Specimen.Title(name: "new"), for: "new")
    try store.close()
    try specimen.withEngine { engine in
      // Rows of another cleared cache, number 99, that are not yet deleted.
      let key = try #require(try engine.keys(from: [KeySpace.records.rawValue]).first)
      let value = try #require(try engine.get(key.span.bytes))
      var batch = WriteBatch()
      batch.put(([0x10, 99] + Array("left".utf8)).span.bytes, value.span.bytes)
      batch.put(
        (Metadata.reclaimPrefix + [0, 0, 0, 0, 0, 0, 0, 99]).span.bytes, [UInt8]().span.bytes)
      try engine.write(&batch, synced: false)
    }
    let inspection = try specimen.inspect()

    #expect(try keys(inspection) { _ in }.allSatisfy { !$0.hasPrefix("#") })
    #expect(try keys(inspection) { $0.cache = "genres" } == ["genres/new"])
    #expect(try keys(inspection) { $0.match = "fresh" } == [])
    #expect(try inspection.infoReport().text.contains("cleared  2 caches"))
  }

  @Test("Every printed key is accepted as an argument.", arguments: [1, 2, 3] as [UInt64])
  func printedKeys(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let texts = try store.cache("text", of: Int.self)
    let numbers = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let ids = try store.cache("ids", of: Int.self, keyedBy: UUID.self)
    let bytes = try store.cache("bytes", of: Int.self, keyedBy: [UInt8].self)
    let awkward = [
      "", " ", "a ", "0x", "0x1", "0xzz", "0x41", "--help", "-", "a\u{0}b", "\u{202E}abc",
      "e\u{301}",
      "\u{E9}", "\\n", "a,\"b\"", "#1", "*", "\u{1F469}\u{200D}\u{1F680}", "-5", "+1",
    ]
    for (index, key) in awkward.enumerated() { try texts.save(index, for: key) }
    for index in 0..<100 {
      try texts.save(index, for: String(decoding: random.bytes(index % 9), as: UTF8.self))
      try numbers.save(index, for: Int(truncatingIfNeeded: random.next()))
      try ids.save(index, for: UUID(uuidString: UUID().uuidString) ?? UUID())
      try bytes.save(index, for: random.bytes(index % 40))
    }
    try numbers.save(0, for: .min)
    try store.close()
    try specimen.withEngine { engine in
      // Invalid UTF-8 as the keys of a cache of strings, as a faulty program may leave it.
      for key in try engine.keys(from: KeySpace.records.prefix(ofCache: 8)).prefix(5) {
        let value = try #require(try engine.get(key.span.bytes))
        var batch = WriteBatch()
        let foreign = KeySpace.records.prefix(ofCache: 5) + key.dropFirst(2)
        batch.put(foreign.span.bytes, stamp: Record.stamp) { $0.append(value) }
        try engine.write(&batch, synced: false)
      }
    }
    let inspection = try specimen.inspect()

    for form in KeyForm.allCases {
      let keys = try inspection.keys(form: form)
      #expect(Set(keys.map { Array("\($0.cache)/\($0.key)".utf8) }).count == keys.count)
      for (cache, key) in keys {
        var style = Style(.jsonl)
        style.keys = form
        let text = try inspection.getReport(key, cache: cache, style).text
        let row = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(
          (row?["key"] as? String)?.utf8.elementsEqual(key.utf8) == true, "seed \(seed), \(form)")
        let isPlain = key.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
        #expect(isPlain && (form == .base64 || !key.isEmpty))
      }
    }
  }
}

/// A glob pattern matches whole texts.
@Suite struct GlobTests {
  @Test(
    "A pattern matches whole texts.",
    arguments: [
      ("", "", true), ("", "a", false), ("*", "", true), ("a*c", "abbc", true),
      ("a*c", "acb", false),
      ("*b*", "abc", true), ("a?c", "ac", false), ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false),
      ("[]]", "]", true), ("\\*", "*", true), ("\\*", "a", false), ("a**b*", "ab", true),
      ("\u{E9}?", "\u{E9}\u{E8}", true), ("[-a]", "-", true), ("*aab", "aaaaab", true),
    ])
  func patterns(pattern: String, text: String, matches: Bool) throws {
    #expect(try Glob(pattern).matches(text) == matches)
  }

  @Test("A pattern with an unterminated set is refused.")
  func unterminatedSet() {
    #expect { try Glob("a[b") } throws: { outcome(of: $0) == .usage }
  }
}
