/// Finds the functions of a file and their line counts, by matching braces in its code.
///
/// The count is from the line with the declaring keyword to the line with the closing brace, with
/// blank lines and comments. In Swift a function is a `func`, `init`, `deinit` or `subscript`, and
/// a `var` or `let` whose brace opens on its own line. A nested function counts for itself and for
/// the enclosing one. In C and C++ a function is a block after a parameter list, which includes an
/// `if`, but that is never longer than its function.
struct FunctionMeasure {
  struct Function {
    let firstLine: Int
    let lineCount: Int
  }

  private(set) var functions: [Function] = []
  private let code: [UInt8]
  /// The line number of each byte of `code`.
  private let lineAt: [Int]

  init(_ file: SourceFile) {
    code = Array(file.code.joined(separator: "\n").utf8)
    var line = 0
    lineAt = code.map { byte in
      defer { line += byte == UInt8(ascii: "\n") ? 1 : 0 }
      return line
    }
    if file.isSwift { measureSwift() } else { measureC() }
  }

  private mutating func add(from start: Int, opening: Int?) {
    guard let opening, let end = closingBrace(of: opening) else { return }
    functions.append(
      Function(firstLine: lineAt[start], lineCount: lineAt[end] - lineAt[start] + 1))
  }

  private func closingBrace(of opening: Int) -> Int? {
    var depth = 0
    for at in opening..<code.count {
      if code[at] == UInt8(ascii: "{") { depth += 1 }
      if code[at] == UInt8(ascii: "}") { depth -= 1 }
      if depth == 0 { return at }
    }
    return nil
  }

  private func isWordStart(_ at: Int) -> Bool {
    isIdentifierByte(code[at]) && (at == 0 || !isIdentifierByte(code[at - 1]))
  }

  private func word(at start: Int) -> String {
    String(decoding: code[start...].prefix(while: isIdentifierByte), as: UTF8.self)
  }

  // MARK: - Swift

  private static let functionWords: Set = ["func", "init", "deinit", "subscript"]
  private static let propertyWords: Set = ["var", "let"]
  /// The keywords that start the next declaration, before which there was no body.
  private static let declarationWords: Set = [
    "func", "init", "deinit", "subscript", "var", "let", "case", "struct", "class", "enum",
    "extension", "protocol", "actor", "typealias", "associatedtype", "import",
  ]

  private mutating func measureSwift() {
    for at in code.indices where isDeclaring(at) {
      let word = word(at: at)
      let end = at + word.utf8.count
      if Self.functionWords.contains(word) {
        add(from: at, opening: openingBrace(after: end, stopsAtNewline: false))
      } else if Self.propertyWords.contains(word) {
        add(from: at, opening: openingBrace(after: end, stopsAtNewline: true))
      }
    }
  }

  /// Whether a word starts at `at` that is not a member, as in `.init(`.
  private func isDeclaring(_ at: Int) -> Bool {
    isWordStart(at) && (at == 0 || code[at - 1] != UInt8(ascii: "."))
  }

  /// The opening brace of the declaration whose keyword ends at `start`; nil without a body.
  private func openingBrace(after start: Int, stopsAtNewline: Bool) -> Int? {
    var depth = 0
    for at in start..<code.count {
      switch code[at] {
      case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
      case _ where depth > 0: break
      case UInt8(ascii: "{"): return at
      case UInt8(ascii: "}"), UInt8(ascii: ";"): return nil
      case UInt8(ascii: "\n") where stopsAtNewline: return nil
      default: if isDeclaring(at), Self.declarationWords.contains(word(at: at)) { return nil }
      }
    }
    return nil
  }

  // MARK: - C

  /// The keywords that may follow a parameter list.
  private static let qualifiers: Set = ["const", "noexcept", "override", "final"]

  private mutating func measureC() {
    for at in code.indices where code[at] == UInt8(ascii: "{") {
      if let parameters = parameterList(before: at) { add(from: parameters, opening: at) }
    }
  }

  /// The opening parenthesis of the parameter list right before a brace; nil if there is none.
  private func parameterList(before brace: Int) -> Int? {
    let head = String(decoding: code[..<brace].suffix(200), as: UTF8.self)
    var words = head.split(whereSeparator: \.isWhitespace)
    while let last = words.last, Self.qualifiers.contains(String(last)) { words.removeLast() }
    guard words.last?.hasSuffix(")") == true else { return nil }
    var depth = 0
    for at in code[..<brace].indices.reversed() {
      if code[at] == UInt8(ascii: ")") { depth += 1 }
      if code[at] == UInt8(ascii: "(") {
        depth -= 1
        if depth == 0 { return at }
      }
    }
    return nil
  }
}
