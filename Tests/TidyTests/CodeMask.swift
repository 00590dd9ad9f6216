/// Blanks out comments and the text of string literals, so that only code is left.
///
/// Every masked character becomes a space and every newline stays, so offsets in the masked text
/// are offsets in the file. Interpolations in `\( )` are code and stay.
///
/// It handles Swift's nested comments, its multi-line and raw strings, and C's character literals.
/// It does not handle bare regex literals (`/"/`) or C++ raw strings, which the sources do not use.
struct CodeMask {
  enum Language { case swift, c }

  private let input: [UInt8]
  private var output: [UInt8]
  private var at = 0
  private let language: Language

  static func mask(_ text: String, as language: Language) -> String {
    var mask = CodeMask(input: Array(text.utf8), language: language)
    mask.code(until: nil)
    return String(decoding: mask.output, as: UTF8.self)
  }

  private init(input: [UInt8], language: Language) {
    self.input = input
    self.output = input
    self.language = language
  }

  // MARK: - Code

  /// Scans code up to the end, or past the parenthesis that closes an interpolation.
  private mutating func code(until closing: UInt8?) {
    var depth = 0
    while at < input.count {
      if starts(with: "//") {
        blank { $0.input[$0.at] == UInt8(ascii: "\n") }
      } else if starts(with: "/*") {
        blockComment()
      } else if let hashes = stringStart() {
        string(hashes: hashes)
      } else if isCharacterLiteral {
        characterLiteral()
      } else {
        let byte = input[at]
        at += 1
        if byte == UInt8(ascii: "(") { depth += 1 }
        if byte == closing {
          if depth == 0 { return }
          depth -= 1
        }
      }
    }
  }

  // MARK: - Comments

  private mutating func blockComment() {
    var depth = 0
    repeat {
      if starts(with: "/*") {
        depth += language == .swift || depth == 0 ? 1 : 0
        blankBytes(2)
      } else if starts(with: "*/") {
        depth -= 1
        blankBytes(2)
      } else {
        blankBytes(1)
      }
    } while depth > 0 && at < input.count
  }

  // MARK: - Literals

  /// The number of `#` before a string that starts here; nil if none does.
  private func stringStart() -> Int? {
    var quote = at
    if language == .swift {
      while quote < input.count, input[quote] == UInt8(ascii: "#") { quote += 1 }
    }
    guard quote < input.count, input[quote] == UInt8(ascii: "\"") else { return nil }
    return quote - at
  }

  private mutating func string(hashes: Int) {
    at += hashes
    let isMultiline = language == .swift && starts(with: "\"\"\"")
    let fence = String(repeating: "#", count: hashes)
    let end = (isMultiline ? "\"\"\"" : "\"") + fence
    let escape = "\\" + fence
    at += isMultiline ? 3 : 1
    while at < input.count, !starts(with: end) {
      if starts(with: escape + "("), language == .swift {
        blankBytes(escape.utf8.count)
        at += 1
        code(until: UInt8(ascii: ")"))
      } else if starts(with: escape) {
        blankBytes(escape.utf8.count + 1)
      } else if input[at] == UInt8(ascii: "\n"), !isMultiline {
        return  // Not a string, or one that does not compile.
      } else {
        blankBytes(1)
      }
    }
    at = min(at + end.utf8.count, input.count)
  }

  /// A quote after a letter or a digit is a digit separator (`1'000`).
  private var isCharacterLiteral: Bool {
    guard language == .c, input[at] == UInt8(ascii: "'") else { return false }
    return at == 0 || !isIdentifierByte(input[at - 1])
  }

  private mutating func characterLiteral() {
    at += 1
    while at < input.count, input[at] != UInt8(ascii: "'"), input[at] != UInt8(ascii: "\n") {
      blankBytes(input[at] == UInt8(ascii: "\\") ? 2 : 1)
    }
    at = min(at + 1, input.count)
  }

  // MARK: - Steps

  private func starts(with text: String) -> Bool {
    input[at...].starts(with: text.utf8)
  }

  private mutating func blank(until isEnd: (CodeMask) -> Bool) {
    while at < input.count, !isEnd(self) { blankBytes(1) }
  }

  private mutating func blankBytes(_ count: Int) {
    for _ in 0..<count where at < input.count {
      if input[at] != UInt8(ascii: "\n") { output[at] = UInt8(ascii: " ") }
      at += 1
    }
  }
}

/// Whether a byte may be part of a name in Swift or C.
func isIdentifierByte(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
  case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
  default: byte >= 0x80
  }
}
