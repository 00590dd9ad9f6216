import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Stored texts cannot act as commands in a terminal or as formulas in a spreadsheet.
@Suite struct TerminalTests {
  /// Characters that could deceive a terminal or a reader, as numbers, since a test's arguments
  /// are printed.
  static let hostile: [UInt32] = [
    0x00, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0D, 0x1B, 0x7F, 0x85, 0x9B, 0x61C, 0x200B, 0x200E, 0x200F,
    0x2028, 0x2029, 0x202A, 0x202E, 0x2060, 0x2066, 0x2069, 0xFEFF, 0xE000, 0xE0001, 0x10FFFF,
  ]

  private func text(_ number: UInt32) throws -> String {
    String(try #require(Unicode.Scalar(number)))
  }

  @Test("A hostile character is escaped as in JSON.", arguments: hostile)
  func escaped(number: UInt32) throws {
    let character = try text(number)
    let text = "before\(character)after".escapedForTerminal

    #expect(text.unicodeScalars.allSatisfy { $0.isASCIIPrintable })
    let read = try JSONDecoder().decode(String.self, from: Data("\"\(text)\"".utf8))
    #expect(Array(read.utf8) == Array("before\(character)after".utf8))
  }

  @Test(
    "Texts of all languages are unchanged.",
    arguments: [
      "", "plain", "back\\slash", "Jos\u{E9}", "e\u{301}", "\u{65E5}\u{672C}",
      "\u{645}\u{6CC}\u{200C}\u{62E}\u{648}\u{627}\u{647}\u{645}",
      "\u{1F469}\u{200D}\u{1F680}", "1\u{A0}000",
    ])
  func unchanged(text: String) {
    #expect(Array(text.escapedForTerminal.utf8) == Array(text.utf8))
  }

  @Test("JSON is escaped for terminals, too, and decodes to the same text.", arguments: hostile)
  func json(number: UInt32) throws {
    let character = try text(number)
    var text = ""
    JSONValue.array([.string(character)]).write(to: &text)

    #expect(text.unicodeScalars.allSatisfy { $0.isASCIIPrintable })
    let read = try JSONDecoder().decode([String].self, from: Data(text.utf8))
    #expect(read.map { Array($0.utf8) } == [Array(character.utf8)])
  }

  @Test("Tables and errors show no hostile character.", arguments: hostile)
  func tables(number: UInt32) throws {
    let character = try text(number)
    var text = ""
    var table = Table(["A", "B"], style: Style())
    table.add(["x\(character)y", "\(character)"], to: &text)
    table.flush(to: &text)
    text += InspectionError(.io, "cannot read \(character)").description

    #expect(text.split(separator: "\n").count == 3)
    #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.isASCIIPrintable })
  }

  @Test("A directory with a hostile name is named without affecting the terminal.")
  func headings() throws {
    let specimen = try Specimen()
    let hostile = specimen.directory.path("\u{1B}[2J\u{202E}\r\nstore")
    try FileManager.default.moveItem(atPath: specimen.path, toPath: hostile)
    let inspection = try Inspection(at: hostile, now: Specimen.now)
    var text = try inspection.infoReport().text + inspection.listReport().text
    _ = try inspection.verify(style: Style()).write(to: &text)
    _ = try inspection.dryRun(style: Style()).write(to: &text)

    #expect(text.contains("\\u001b[2J\\u202e\\u000d\\u000astore"))
    #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.isSafeOnTerminal })
  }

  @Test(
    "A text that begins like a formula is not a formula in a CSV file.",
    arguments: [
      ("=1+1", "'=1+1"), ("+A1", "'+A1"), ("-A1", "'-A1"), ("@SUM(A1)", "'@SUM(A1)"),
      ("=\"a\",b", "\"'=\"\"a\"\",b\""), ("\u{FF1D}1", "'\u{FF1D}1"),
      ("=\u{301}1", "'=\u{301}1"), ("-1.5-A1", "'-1.5-A1"),
      // Other texts, and numbers.
      ("-7", "-7"), ("42", "42"), ("plain", "plain"), ("", ""), ("a=b", "a=b"),
      ("'quoted'", "'quoted'"), ("a\"\u{301},b", "\"a\"\"\u{301},b\""),
      ("a,\u{301}b", "\"a,\u{301}b\""),
    ])
  func csvCells(text: String, cell: String) {
    #expect(Array(csvCell(text).utf8) == Array(cell.utf8))
    // A tab or a line break before the formula is escaped.
    #expect(["\t", "\r", "\n"].allSatisfy { csvCell($0 + "=1").hasPrefix("\\u00") })
  }

  @Test("Caches and keys that begin like formulas are quoted in lists, and numbers are not.")
  func csvLists() throws {
    let directory = try TemporaryDirectory()
    let store = try Specimen.open(directory.path("store"))
    let cache = try store.cache("=HYPERLINK(A1)", of: Int.self)
    for key in ["=1+1", "+1+1", "@A1", "-1+1", "plain"] { try cache.save(1, for: key) }
    try store.cache("numbers", of: Int.self, keyedBy: Int.self).save(1, for: -7)
    try store.close()
    let inspection = try Inspection(at: directory.path("store"), now: Specimen.now + 60)

    let rows = try inspection.listReport(Selection(), Style(.csv)).text.split(separator: "\n")
    let cells = rows.dropFirst().map { $0.split(separator: ",", omittingEmptySubsequences: false) }

    #expect(
      cells.map { "\($0[0]) \($0[1])" } == [
        "'=HYPERLINK(A1) '+1+1", "'=HYPERLINK(A1) 0x2d312b31", "'=HYPERLINK(A1) '=1+1",
        "'=HYPERLINK(A1) '@A1", "'=HYPERLINK(A1) plain", "numbers -7",
      ])
    // A negative age is a number, and is not quoted.
    let earlier = try Inspection(at: directory.path("store"), now: Specimen.now - 60)
    let row = try earlier.listReport(Selection(), Style(.csv)).text.split(separator: "\n").last
    #expect(row?.split(separator: ",", omittingEmptySubsequences: false)[8] == "-60.0")
  }
}

extension Unicode.Scalar {
  fileprivate var isASCIIPrintable: Bool { (0x20...0x7E).contains(value) }
}
