import Testing

/// Files, functions and lines have a maximum size.
@Suite struct SizeTests {
  @Test("No file is longer than 600 lines.")
  func files() {
    SizeRules.fileLength.expectHolds(in: SourceTree.repository.code)
  }

  @Test("No function is longer than 70 lines.")
  func functions() {
    SizeRules.functionLength.expectHolds(in: SourceTree.repository.code)
  }

  @Test("No line is wider than 100 columns.")
  func lines() {
    SizeRules.lineWidth.expectHolds(in: SourceTree.repository.code)
  }

  @Test("The README has at most 120 lines.")
  func readme() throws {
    let readme = try #require(SourceTree.repository.file(at: "README.md"))
    #expect(readme.lineCount <= 120)
  }

  // MARK: - The rules detect violations

  @Test("The rule for files detects a long file.")
  func longFile() {
    let fits = String(repeating: "let a = 1\n", count: 600)
    #expect(SizeRules.fileLength.lines(brokenBy: fits, at: "a.swift") == [])
    #expect(SizeRules.fileLength.lines(brokenBy: fits + "let b = 1\n", at: "a.swift") == [601])
  }

  @Test(
    "The rule for functions detects a long Swift function.",
    arguments: [
      "func f(\n_ g: () -> Void = {}\n) {", "init?() {", "deinit {", "subscript(i: Int) -> Int {",
      "var x: Int {",
    ])
  func longSwiftFunction(head: String) {
    // 70 lines with the head and the closing brace; braces in strings and comments are ignored.
    let headLines = head.split(separator: "\n").count
    let body = Array(repeating: "g(\"}\") // }", count: 69 - headLines).joined(separator: "\n")
    let fits = "struct S {\n\(head)\n\(body)\n}\n}\n"
    let long = "struct S {\n\(head)\n\(body)\n{}\n}\n}\n"
    #expect(SizeRules.functionLength.lines(brokenBy: fits, at: "a.swift") == [])
    #expect(SizeRules.functionLength.lines(brokenBy: long, at: "a.swift") == [2])
  }

  @Test("The rule for functions accepts a requirement without a body.")
  func requirements() {
    let filler = Array(repeating: "  case a", count: 80).joined(separator: "\n")
    let text = "protocol P {\n  func f()\n  init()\n}\nenum E {\n\(filler)\n}\n"
    #expect(SizeRules.functionLength.lines(brokenBy: text, at: "a.swift") == [])
  }

  @Test("The rule for functions detects a long C function.")
  func longCFunction() {
    let body = Array(repeating: "  g('}');", count: 69).joined(separator: "\n")
    let long = "namespace {\nint f(int a) noexcept {\n\(body)\n}\n}\n"
    #expect(SizeRules.functionLength.lines(brokenBy: long, at: "a.cc") == [2])
    #expect(SizeRules.functionLength.lines(brokenBy: "struct S {\n\(body)\n};\n", at: "a.cc") == [])
  }

  @Test("The rule for lines detects a wide line.")
  func wideLine() {
    let wide = "// " + String(repeating: "a", count: 97)
    #expect(SizeRules.lineWidth.lines(brokenBy: wide, at: "a.swift") == [])
    #expect(SizeRules.lineWidth.lines(brokenBy: "\n" + wide + "a", at: "a.swift") == [2])
  }
}

enum SizeRules {
  static let fileLength = Rule { file in
    file.lineCount <= 600
      ? [] : [Finding(file, line: file.lineCount - 1, "the file has \(file.lineCount) lines")]
  }

  static let lineWidth = Rule { file in
    file.lines.enumerated().filter { $0.element.count > 100 }.map {
      Finding(file, line: $0.offset, "the line has \($0.element.count) columns")
    }
  }

  static let functionLength = Rule { file in
    FunctionMeasure(file).functions.filter { $0.lineCount > 70 }.map {
      Finding(file, line: $0.firstLine, "the function has \($0.lineCount) lines")
    }
  }
}
