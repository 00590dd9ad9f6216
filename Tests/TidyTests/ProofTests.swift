import Testing

/// Every unchecked promise to the compiler has a reason beside the code.
@Suite struct ProofTests {
  @Test("Every unchecked promise has a reason right above it.")
  func reasons() {
    Proofs.reasons.expectHolds(in: SourceTree.repository.files(under: "Sources"))
  }

  @Test(
    "The rule detects a missing reason.",
    arguments: ["extension A: @unchecked Sendable {}", "nonisolated(unsafe) var a = 1"])
  func missingReasons(line: String) {
    let rule = Proofs.reasons
    #expect(rule.lines(brokenBy: line, at: "a.swift") == [1])
    #expect(rule.lines(brokenBy: "// far away\n\n" + line, at: "a.swift") == [3])
    #expect(rule.lines(brokenBy: "// Locked by `state`.\n" + line, at: "a.swift") == [])
    #expect(rule.lines(brokenBy: "// Locked.\n@frozen\npackage\n" + line, at: "a.swift") == [])
  }

  @Test("The rule detects unmanaged pointers.")
  func unmanagedPointers() {
    let text = "let a = 1\nlet b = Unmanaged.passRetained(c)\n"
    #expect(Proofs.reasons.lines(brokenBy: text, at: "a.swift") == [2])
  }
}

enum Proofs {
  private static let words = ["@unchecked Sendable", "nonisolated(unsafe)", "Unmanaged"]

  /// The reason is a comment on the same line, or within three lines above without a blank line.
  static let reasons = Rule { file in
    let words = words.filter(file.mentions)
    if words.isEmpty { return [] }
    return file.code.enumerated().flatMap { index, line in
      words.filter(line.containsWord).filter { _ in !hasReason(file, at: index) }.map {
        Finding(file, line: index, "'\($0)' needs a comment right above that gives the reason")
      }
    }
  }

  private static func hasReason(_ file: SourceFile, at index: Int) -> Bool {
    if file.lines[index].contains(" // ") { return true }
    let above = file.lines[max(0, index - 3)..<index].reversed().map { line in
      line.drop { $0 == " " }
    }
    return above.prefix { !$0.isEmpty }.contains { $0.hasPrefix("//") }
  }
}
