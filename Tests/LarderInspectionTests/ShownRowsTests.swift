import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// The rows of a list on a terminal have numbers, which stand for their keys.
@Suite(.timeLimit(.minutes(10))) struct ShownRowsTests {
  /// Runs `kvinspect` on a terminal of 80 columns, and returns what it wrote.
  private func onTerminal(_ arguments: [String], home: String) throws -> (Int32, String) {
    let (terminal, end) = try #require(openTerminal(columns: 80))
    let process = Process()
    process.executableURL = URL(filePath: try #require(ChildProcess.path(of: "kvinspect")))
    process.arguments = arguments
    process.environment = ["HOME": home, "TMPDIR": home, "NO_COLOR": "1"]
    process.standardOutput = FileHandle(fileDescriptor: end)
    try process.run()
    close(end)
    var text: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4096)
    // The last read fails: nobody writes to the terminal any more.
    while case let count = read(terminal, &piece, piece.count), count > 0 {
      text += piece[..<count]
    }
    close(terminal)
    process.waitUntilExit()
    let lines = String(decoding: text, as: UTF8.self).replacing("\r\n", with: "\n")
    return (process.terminationStatus, lines)
  }

  @Test("A number stands for the key of its row, whatever was saved or removed since.")
  func numbers() throws {
    let specimen = try Specimen()
    let home = try TemporaryDirectory()
    let listed = try onTerminal(["ls", specimen.path, "--now", "2027-01-01"], home: home.path)
    #expect(listed.0 == 0)
    let lines = listed.1.split(separator: "\n").map { $0.split(separator: " ") }
    let third = try #require(lines.first { $0.first == "3" })
    let key = try #require(third.last.map(String.init))
    #expect(lines.contains { $0.first == "#" })
    var status = stat()
    #expect(stat(home.path(".cache/kvinspect/rows"), &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)

    let store = try Specimen.open(specimen.path)
    try store.cache("aaa", of: Int.self).save(1, for: "first")
    try store.close()
    for command in ["get", "why"] {
      let shown = try onTerminal([command, specimen.path, "#3"], home: home.path)
      let named = try onTerminal([command, specimen.path, key], home: home.path)
      #expect(shown.0 == named.0)
      #expect(
        shown.1.split(separator: "\n").filter { !$0.contains("ago") }
          == named.1.split(separator: "\n").filter { !$0.contains("ago") })
    }
    let removed = try onTerminal(["remove", specimen.path, "#3", "--write"], home: home.path)
    #expect(removed.0 == 0 && removed.1.contains(key))
    #expect(try onTerminal(["get", specimen.path, "#3"], home: home.path).0 == 2)
    #expect(
      try onTerminal(["get", specimen.path, "#3", "--keys", "base64"], home: home.path).0 == 2)
  }

  @Test("A row that was not shown, and one of another store, is an error.")
  func errors() throws {
    let specimen = try Specimen()
    let home = try TemporaryDirectory()
    #expect(try onTerminal(["get", specimen.path, "#1"], home: home.path).0 == 64)
    #expect(try onTerminal(["top", specimen.path, "--limit", "2"], home: home.path).0 == 0)
    #expect(try onTerminal(["get", specimen.path, "#2"], home: home.path).0 == 0)
    for text in ["#0", "#3", "#", "#99999999999999999999"] {
      #expect(try onTerminal(["get", specimen.path, text], home: home.path).0 != 0, "\(text)")
    }
    #expect(
      try onTerminal(["get", specimen.path, "#1", "--cache", "none"], home: home.path).0 == 64)
    let other = try Specimen()
    #expect(try onTerminal(["get", other.path, "#1"], home: home.path).0 == 64)
    try Data("damaged".utf8).write(to: URL(filePath: home.path(".cache/kvinspect/rows")))
    #expect(try onTerminal(["get", specimen.path, "#1"], home: home.path).0 == 64)
  }

  @Test("Nothing is numbered or kept in a pipe, with --redact, or without a home.")
  func without() throws {
    let specimen = try Specimen()
    let home = try TemporaryDirectory()
    let redacted = try onTerminal(["ls", specimen.path, "--redact"], home: home.path)
    #expect(redacted.0 == 0 && !redacted.1.contains("#"))
    #expect(try onTerminal(["ls", specimen.path], home: "").1.contains("#") == false)
    #expect(!FileManager.default.fileExists(atPath: home.path(".cache")))
    #expect(try Kvinspect(["ls", specimen.path], temporary: home.path).finish().status == 0)
  }

  @Test("A key that reads like a row is written in hex, and found by it.")
  func keysLikeRows() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("rows", of: Int.self)
    for key in ["#7", "#", "#a", "7"] { try cache.save(1, for: key) }
    try store.close()
    let written = ["#7", "#", "#a", "7"].map {
      KeyForm.auto.text(of: Array($0.utf8), kind: .text)
    }
    #expect(written == ["0x2337", "#", "#a", "7"])
    let home = try TemporaryDirectory()
    #expect(try onTerminal(["get", specimen.path, "0x2337"], home: home.path).0 == 0)
    #expect(try onTerminal(["get", specimen.path, "#a"], home: home.path).0 == 0)
  }

  @Test("The colour of a row is that of its state, and not of its number.", arguments: [80, 40])
  func colours(width: Int) throws {
    var style = Style()
    (style.isColored, style.width, style.numbers) = (true, width, RowNumbers())
    var text = ""
    _ = try Specimen().inspect().list(Selection(), style: style).write(to: &text)
    let coloured = text.split(separator: "\n").filter { $0.contains("\u{1B}[") }
    #expect(coloured.count == 10)
    #expect(
      coloured.allSatisfy { line in
        // In groups of lines, the titles have the colours.
        (RecordState.allCases.map(\.rawValue) + ["STATE "]).contains { line.contains("m\($0)") }
      })
  }

  @Test("At most 1,000 rows are kept.")
  func limit() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("many", of: Int.self)
    for number in 0..<1100 { try cache.save(number, for: "\(number)") }
    try store.close()
    var style = Style()
    let numbers = RowNumbers()
    style.numbers = numbers
    var selection = Selection()
    selection.cache = "many"
    var text = ""
    _ = try specimen.inspect().list(selection, style: style).write(to: &text)
    #expect(numbers.shown?.rows.count == 1000)
    let folder = try TemporaryDirectory()
    try #require(numbers.shown).keep(in: folder.path("rows"))
    #expect(try ShownRows(keptIn: folder.path("rows")) == numbers.shown)
    #expect(text.split(separator: "\n").last?.split(separator: " ").first == "-")
  }
}
