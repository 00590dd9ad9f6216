import Foundation
import Testing

/// What every text of the repository keeps to, and what the repository must not hold.
@Suite struct TextTests {
  private let tree = SourceTree.repository

  /// Rules about no files would all hold.
  @Test(arguments: ["Package.swift", "Makefile", "Sources/LarderEngine/StorageEngine.swift"])
  func theRulesReadTheRealFiles(path: String) {
    #expect(tree.file(at: path) != nil)
  }

  @Test func sourcesAreASCII() {
    Texts.ascii.expectHolds(in: tree.code)
  }

  @Test func nothingIsLeftToDo() {
    Texts.leftovers.expectHolds(in: tree.code)
  }

  @Test func noTextNamesAPlaceOutsideTheRepository() {
    Texts.foreignPaths.expectHolds(in: tree.files)
  }

  @Test func gitTracksNothingThatIsBuilt() throws {
    for path in try Texts.trackedPaths() where Texts.isBuilt(path) {
      Issue.record("\(path) is tracked")
    }
  }

  // MARK: - The rules are seen to fail

  @Test func asciiRuleSeesALetterFromElsewhere() {
    let text = "let a = 1\nlet b = \"caf\u{E9}\"\n"
    #expect(Texts.ascii.lines(brokenBy: text, at: "a.swift") == [2])
  }

  @Test(arguments: ["// TO\("DO"): later", "let a = 1  // FIX\("ME")"])
  func leftoverRuleSeesANote(line: String) {
    #expect(Texts.leftovers.lines(brokenBy: "\n" + line, at: "a.swift") == [2])
  }

  @Test func leftoverRuleLeavesWordsAlone() {
    #expect(Texts.leftovers.lines(brokenBy: "// METHOD, MASTODON", at: "a.swift") == [])
  }

  @Test func pathRuleSeesAForeignPath() {
    let text = "# Title\nSee `/wo\("rk")/x` and sha\("red")/design.\n"
    #expect(Texts.foreignPaths.lines(brokenBy: text, at: "README.md") == [2])
  }

  @Test(arguments: [
    ".build/debug.yaml", "Benchmarks/.build/a.o", "Package.resolved",
    "Benchmarks/Package.resolved",
  ])
  func trackingRuleSeesABuiltFile(path: String) {
    #expect(Texts.isBuilt(path))
    #expect(!Texts.isBuilt("Package.swift"))
  }
}

enum Texts {
  static let ascii = Rule { file in
    file.lines.enumerated().filter { !$0.element.utf8.allSatisfy { $0 < 0x80 } }.map {
      Finding(file, line: $0.offset, "write it as an escape, such as \\u{E9}")
    }
  }

  static let leftovers = Rule { file in
    file.lines.enumerated().flatMap { index, line in
      ["TO" + "DO", "FIX" + "ME"].filter(line.containsWord).map {
        Finding(file, line: index, "\($0): do it, or write an issue")
      }
    }
  }

  static let foreignPaths = Rule { file in
    file.lines.enumerated().filter { line in
      ["/wo" + "rk/", "sha" + "red/"].contains { line.element.contains($0) }
    }.map { Finding(file, line: $0.offset, "a reader has no such place") }
  }

  static func isBuilt(_ path: String) -> Bool {
    path.split(separator: "/").contains { $0.hasPrefix(".build") || $0 == "Package.resolved" }
  }

  /// What git tracks; nothing when the sources did not come by git.
  static func trackedPaths() throws -> [String] {
    let git = Process()
    let output = Pipe()
    git.executableURL = URL(filePath: "/usr/bin/env")
    git.arguments = ["git", "ls-files"]
    git.currentDirectoryURL = SourceTree.root
    git.standardOutput = output
    git.standardError = FileHandle.nullDevice
    try git.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    git.waitUntilExit()
    return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
  }
}
