import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// Reports fit the terminal: no line is wider, and no word is broken.
@Suite struct WidthTests {
  /// A store with long names and keys, wide characters, and text from right to left.
  private static func specimen() throws -> Specimen {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let pictures = try store.cache(
      "pictures of the week, large and small", of: [UInt8].self,
      lifetime: .fresh(for: .days(30), thenStaleFor: .days(300)), coder: .bytes,
      byteBudget: 1 << 30)
    for number in 0..<30 {
      let name = String(repeating: "a/long/path/", count: number % 9) + "picture-\(number).jpg"
      try pictures.save(Array(repeating: 7, count: 1 << (number % 16)), for: name, tags: ["week"])
    }
    let wide = try store.cache("\u{6F2B}\u{753B}\u{306E}\u{7D75}", of: Int.self)
    for number in 0..<5 {
      try wide.save(
        number, for: String(repeating: "\u{65E5}\u{672C}\u{8A9E}", count: 4 * number + 1))
      try wide.save(
        number, for: String(repeating: "\u{05E9}\u{05DC}\u{05D5}\u{05DD} ", count: number))
      try wide.save(
        number, for: String(repeating: "\u{1F469}\u{200D}\u{1F680}", count: 20 * number))
    }
    try store.close()
    return specimen
  }

  /// Reports of two stores, which are made once: a second store with the same entries may have
  /// others, as the members of a JSON object have no order.
  private static func reports(
    of specimen: Specimen, and other: Specimen, _ style: Style
  ) throws -> [(name: String, text: String)] {
    let inspection = try specimen.inspect()
    var style = style
    // A line of a hex dump has 76 characters.
    style.values = .size
    func text(_ report: Report) throws -> String {
      var text = ""
      _ = try report.write(to: &text)
      return text
    }
    let path = specimen.path
    return [
      ("info", try text(inspection.info(style: style))),
      ("ls", try text(inspection.list(Selection(), style: style))),
      ("stats", try text(inspection.statistics(of: Selection(), style: style))),
      ("ttl", try text(inspection.timeToLive(ofCache: nil, style: style))),
      (
        "prefixes",
        try text(
          inspection.prefixes(
            of: Selection(), delimiters: ["/"], depth: 4, limit: 20, style: style))
      ),
      ("verify", try text(inspection.verify(style: style))),
      ("digest", try text(inspection.digest(of: Selection(), style: style))),
      ("diff", try text(inspection.differences(from: other.inspect(), inCache: nil, style: style))),
      ("get", try text(inspection.get("picture-9.jpg", cache: nil, style: style))),
      ("why", try text(inspection.why("picture-9.jpg", cache: nil, style: style))),
      ("sweep", try text(inspection.dryRun(style: style))),
      ("files", try text(Inspection.files(in: path, style: style))),
      (
        "doctor", try text(Inspection.doctor(path, now: Specimen.now, isDeep: true, style: style))
      ),
      ("summary", try text(Inspection.summary(path, now: Specimen.now, style: style))),
    ]
  }

  @Test("No line of a report is wider than the terminal.", arguments: [60, 80, 120])
  func fits(width: Int) throws {
    let specimen = try Self.specimen()
    var style = Style()
    style.width = width
    for (name, text) in try Self.reports(of: specimen, and: Specimen(), style) {
      for line in text.split(separator: "\n") where !line.contains("/larder-") {
        #expect(String(line).displayWidth <= width, "\(name): \(line)")
      }
    }
  }

  @Test("A narrow report has the words of a wide one: none is broken.", arguments: [60, 80])
  func words(width: Int) throws {
    let specimen = try Self.specimen()
    var style = Style()
    let other = try Specimen()
    let wide = try Self.reports(of: specimen, and: other, style)
    style.width = width
    let narrow = try Self.reports(of: specimen, and: other, style)
    for ((name, text), (_, whole)) in zip(narrow, wide) {
      let known = Set(whole.split(whereSeparator: \.isWhitespace))
      for word in text.split(whereSeparator: \.isWhitespace)
      where !word.contains("...") && !word.contains("/larder-") {
        #expect(known.contains(word), "\(name): \(word)")
      }
    }
  }

  @Test("Reports at 80 and 120 columns are as a person has looked at them.", arguments: [80, 120])
  func snapshots(width: Int) throws {
    let specimen = try Self.specimen()
    var style = Style()
    style.width = width
    style.numbers = RowNumbers()
    // Others differ with the machine, or with the order of a JSON object's members.
    let names: Set = ["info", "ls", "stats", "ttl", "prefixes", "get", "why", "sweep"]
    for (name, text) in try Self.reports(of: specimen, and: Specimen(), style)
    where names.contains(name) {
      try expectSnapshot(text, named: "wide.\(name).\(width)", masking: [(specimen.path, "STORE")])
    }
  }

  @Test(
    "A character takes the cells that terminals give it.",
    arguments: [
      ("", 0), ("abc", 3), ("\u{E9}", 1), ("e\u{301}", 1), ("\u{65E5}\u{672C}", 4),
      ("\u{AC00}", 2), ("\u{FF21}", 2), ("\u{FF71}", 1), ("\u{1F469}\u{200D}\u{1F680}", 2),
      ("\u{2764}\u{FE0F}", 2), ("\u{2764}", 1), ("\u{05E9}\u{05DC}", 2), ("\u{20000}", 2),
    ])
  func displayWidth(text: String, width: Int) {
    #expect(text.displayWidth == width)
  }

  @Test("A shortened text keeps its ends, and has at most the width.")
  func shortened() {
    #expect("picture".shortened(to: 7) == "picture")
    #expect("pictures".shortened(to: 7) == "pi...es")
    #expect("\u{65E5}\u{672C}\u{8A9E}\u{65E5}".shortened(to: 7) == "\u{65E5}...\u{65E5}")
    #expect("\u{65E5}\u{672C}\u{8A9E}\u{65E5}".shortened(to: 6) == "\u{65E5}...")
  }

  @Test("A folded text is broken at spaces, and a long word stays whole.")
  func folded() {
    #expect("fresh for 7 days".folded(to: 80) == ["fresh for 7 days"])
    #expect("fresh for 7 days".folded(to: 9) == ["fresh for", "7 days"])
    #expect("a verylongword b".folded(to: 5) == ["a", "verylongword", "b"])
  }

  @Test("A table that does not fit has a group of lines for each row.")
  func groups() {
    var style = Style()
    style.width = 24
    var text = ""
    var table = Table([.name("CACHE"), .number("RECORDS"), .number("BYTES"), "NOTE"], style: style)
    table.add(["pictures", "1,000", "199.7 MB", "fresh for 7 days"], to: &text)
    table.add(["b", "2", "1 B", ""], to: &text)
    table.flush(to: &text)
    table.add(["c", "3", "2 B", "never expires"], to: &text)
    table.flush(to: &text)
    #expect(
      text == """
        CACHE    pictures
        RECORDS  1,000
        BYTES    199.7 MB
        NOTE     fresh for 7 days

        CACHE    b
        RECORDS  2
        BYTES    1 B
        NOTE     \("")
        \("")
        CACHE    c
        RECORDS  3
        BYTES    2 B
        NOTE     never expires

        """)
  }
}
