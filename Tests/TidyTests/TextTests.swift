import Foundation
import Testing

/// Sources are ASCII and finished, texts name no foreign path, and git tracks no build product.
@Suite struct TextTests {
  private let tree = SourceTree.repository

  /// A rule that reads no files would always hold.
  @Test(
    "The rules read the repository's files.",
    arguments: ["Package.swift", "Makefile", "Sources/Larder/Engine/StorageEngine.swift"])
  func realFiles(path: String) {
    #expect(tree.file(at: path) != nil)
  }

  @Test("The sources are ASCII.")
  func ascii() {
    Texts.ascii.expectHolds(in: tree.code)
  }

  @Test("The sources have no notes of unfinished work.")
  func leftovers() {
    Texts.leftovers.expectHolds(in: tree.code)
  }

  @Test("No text names a path outside of the repository.")
  func foreignPaths() {
    Texts.foreignPaths.expectHolds(in: tree.files)
  }

  @Test("Git tracks no build products.")
  func trackedFiles() throws {
    for path in try Texts.trackedPaths() where Texts.isBuilt(path) {
      Issue.record("\(path) is tracked")
    }
  }

  // MARK: - The rules detect violations

  @Test("The ASCII rule detects another letter.")
  func otherLetters() {
    let text = "let a = 1\nlet b = \"caf\u{E9}\"\n"
    #expect(Texts.ascii.lines(brokenBy: text, at: "a.swift") == [2])
  }

  @Test(
    "The rule for unfinished work detects a note.",
    arguments: ["// TO\("DO"): later", "let a = 1  // FIX\("ME")"])
  func notes(line: String) {
    #expect(Texts.leftovers.lines(brokenBy: "\n" + line, at: "a.swift") == [2])
  }

  @Test("The rule for unfinished work accepts longer words.")
  func wholeWords() {
    #expect(Texts.leftovers.lines(brokenBy: "// METHOD, MASTODON", at: "a.swift") == [])
  }

  @Test("The path rule detects a foreign path.")
  func foreignPath() {
    let text = "# Title\nSee `/wo\("rk")/x` and sha\("red")/design.\n"
    #expect(Texts.foreignPaths.lines(brokenBy: text, at: "README.md") == [2])
  }

  @Test(
    "The tracking rule detects a build product.",
    arguments: [
      ".build/debug.yaml", "Benchmarks/.build/a.o", "Package.resolved",
      "Benchmarks/Package.resolved",
    ])
  func buildProducts(path: String) {
    #expect(Texts.isBuilt(path))
    #expect(!Texts.isBuilt("Package.swift"))
  }
}

enum Texts {
  static let ascii = Rule { file in
    file.lines.enumerated().filter { !$0.element.utf8.allSatisfy { $0 < 0x80 } }.map {
      Finding(file, line: $0.offset, "write other characters as escapes, such as \\u{E9}")
    }
  }

  static let leftovers = Rule { file in
    let words = ["TO" + "DO", "FIX" + "ME"].filter(file.mentions)
    if words.isEmpty { return [] }
    return file.lines.enumerated().flatMap { index, line in
      words.filter(line.containsWord).map {
        Finding(file, line: index, "\($0): finish it, or open an issue")
      }
    }
  }

  static let foreignPaths = Rule { file in
    file.lines.enumerated().filter { line in
      ["/wo" + "rk/", "sha" + "red/"].contains { line.element.contains($0) }
    }.map { Finding(file, line: $0.offset, "the path does not exist for a reader") }
  }

  static func isBuilt(_ path: String) -> Bool {
    path.split(separator: "/").contains { $0.hasPrefix(".build") || $0 == "Package.resolved" }
  }

  /// The paths that git tracks; empty if the sources are not a git checkout.
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
