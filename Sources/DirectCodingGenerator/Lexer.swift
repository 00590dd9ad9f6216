/// Splits a Swift file into tokens.
///
/// It handles nested comments, all forms of string literals with their interpolations, and regex
/// literals. A literal is one token. `->` and each other sign is one token, too: operators are not
/// put together.
struct Lexer {
  private let path: String
  private let input: [UInt8]
  private var at = 0
  private var line = 1
  private var lineStart = 0
  private var tokens: [Token] = []
  private var lastTokenLine = 0
  private var lastTokenEnd = -1

  static func tokens(of text: String, path: String) throws(Refusal) -> [Token] {
    var lexer = Lexer(path: path, text: text)
    try lexer.run()
    return lexer.tokens
  }

  private init(path: String, text: String) {
    self.path = path
    input = Array(text.utf8)
  }

  private mutating func run() throws(Refusal) {
    if starts(with: "#!") { skipLine() }
    while at < input.count {
      let byte = input[at]
      if byte == UInt8(ascii: "\n") {
        step()
      } else if byte <= UInt8(ascii: " ") {
        at += 1
      } else if starts(with: "//") {
        skipLine()
      } else if starts(with: "/*") {
        try skipComment()
      } else {
        try appendToken()
      }
    }
    try pairBrackets()
  }

  private mutating func appendToken() throws(Refusal) {
    let (start, startLine, startOfLine) = (at, line, lineStart)
    let kind = try skipToken()
    tokens.append(
      Token(
        kind: kind, text: String(decoding: input[start..<at], as: UTF8.self), line: startLine,
        column: start - startOfLine + 1, startsLine: startLine != lastTokenLine,
        hasSpaceBefore: start != lastTokenEnd))
    (lastTokenLine, lastTokenEnd) = (line, at)
  }

  private mutating func skipToken() throws(Refusal) -> Token.Kind {
    let byte = input[at]
    if let hashes = hashes(before: "\"") {
      try skipString(hashes: hashes)
      return .string
    }
    if let hashes = hashes(before: "/"), hashes > 0 || isRegexStart {
      try skipRegex(hashes: hashes)
      return .regex
    }
    if byte == UInt8(ascii: "`") {
      try skipUntilBacktick()
      return .word
    }
    if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
      skipNumber()
      return .number
    }
    if isNamePart(byte) || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "$") {
      at += 1
      while at < input.count, isNamePart(input[at]) { at += 1 }
      return byte == UInt8(ascii: "#") ? .sign : .word
    }
    at += starts(with: "->") ? 2 : 1
    return .sign
  }
}

// MARK: - Comments and literals

extension Lexer {
  private mutating func skipLine() {
    while at < input.count, input[at] != UInt8(ascii: "\n") { at += 1 }
  }

  private mutating func skipComment() throws(Refusal) {
    let start = place
    var depth = 0
    repeat {
      guard at < input.count else { throw refusal(start, "this comment has no end") }
      if starts(with: "/*") {
        depth += 1
        at += 2
      } else if starts(with: "*/") {
        depth -= 1
        at += 2
      } else {
        step()
      }
    } while depth > 0
  }

  private mutating func skipString(hashes: Int) throws(Refusal) {
    let start = place
    at += hashes
    // `#"""#` has one line, and holds a quote.
    let isMultiline =
      starts(with: "\"\"\"")
      && input[(at + 3)...].first { $0 > UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
        == UInt8(ascii: "\n")
    let fence = String(repeating: "#", count: hashes)
    let end = (isMultiline ? "\"\"\"" : "\"") + fence
    let escape = "\\" + fence
    at += isMultiline ? 3 : 1
    while !starts(with: end) {
      guard at < input.count, isMultiline || input[at] != UInt8(ascii: "\n") else {
        throw refusal(start, "this string has no end")
      }
      if starts(with: escape + "(") {
        at += escape.utf8.count + 1
        try skipInterpolation(start)
      } else if starts(with: escape) {
        at += escape.utf8.count
        if at < input.count { step() }
      } else {
        step()
      }
    }
    at += end.utf8.count
  }

  /// Skips code up to the parenthesis that closes it.
  private mutating func skipInterpolation(_ start: (Int, Int)) throws(Refusal) {
    var depth = 1
    while depth > 0 {
      guard at < input.count else { throw refusal(start, "this string has no end") }
      if starts(with: "/*") {
        try skipComment()
      } else if let hashes = hashes(before: "\"") {
        try skipString(hashes: hashes)
      } else {
        if input[at] == UInt8(ascii: "(") { depth += 1 }
        if input[at] == UInt8(ascii: ")") { depth -= 1 }
        step()
      }
    }
  }

  /// Whether a slash begins a regex literal: nothing before it can be divided, no space is after
  /// it, and the line has another slash.
  private var isRegexStart: Bool {
    if let last = tokens.last {
      let isOperand =
        last.kind == .word && !["return", "in", "case", "try", "await", "else"].contains(last.text)
        || last.kind != .word && last.kind != .sign
        || [")", "]", "}", "?", "!"].contains(last.text)
      if isOperand { return false }
    }
    guard at + 1 < input.count, input[at + 1] > UInt8(ascii: " ") else { return false }
    return input[(at + 1)...].prefix { $0 != UInt8(ascii: "\n") }.contains(UInt8(ascii: "/"))
  }

  private mutating func skipRegex(hashes: Int) throws(Refusal) {
    let start = place
    let end = "/" + String(repeating: "#", count: hashes)
    at += hashes + 1
    while !starts(with: end) {
      guard at < input.count, hashes > 0 || input[at] != UInt8(ascii: "\n") else {
        throw refusal(start, "this regex literal has no end")
      }
      if input[at] == UInt8(ascii: "\\"), at + 1 < input.count { at += 1 }
      step()
    }
    at += end.utf8.count
  }

  private mutating func skipUntilBacktick() throws(Refusal) {
    let start = place
    repeat {
      at += 1
      guard at < input.count, input[at] != UInt8(ascii: "\n") else {
        throw refusal(start, "this name has no closing backtick")
      }
    } while input[at] != UInt8(ascii: "`")
    at += 1
  }

  private mutating func skipNumber() {
    while at < input.count {
      // The point of a fraction is followed by a digit.
      let isPoint =
        input[at] == UInt8(ascii: ".") && at + 1 < input.count
        && input[at + 1] >= UInt8(ascii: "0") && input[at + 1] <= UInt8(ascii: "9")
      let isSign =
        (input[at] == UInt8(ascii: "-") || input[at] == UInt8(ascii: "+"))
        && [UInt8(ascii: "e"), UInt8(ascii: "p")].contains(input[at - 1] | 0x20)
      guard isNamePart(input[at]) || isPoint || isSign else { return }
      at += 1
    }
  }

  /// The number of `#` directly before `sign`; nil if another character follows them.
  private func hashes(before sign: Unicode.Scalar) -> Int? {
    var place = at
    while place < input.count, input[place] == UInt8(ascii: "#") { place += 1 }
    guard place < input.count, input[place] == UInt8(ascii: sign) else { return nil }
    return place - at
  }
}

// MARK: - Steps

extension Lexer {
  private var place: (Int, Int) { (line, at - lineStart + 1) }

  private func refusal(_ place: (Int, Int), _ reason: String) -> Refusal {
    Refusal(path: path, line: place.0, column: place.1, reason: reason)
  }

  private func starts(with text: String) -> Bool { input[at...].starts(with: text.utf8) }

  private mutating func step() {
    at += 1
    guard input[at - 1] == UInt8(ascii: "\n") else { return }
    line += 1
    lineStart = at
  }

  private func isNamePart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
      true
    default: false
    }
  }

  private mutating func pairBrackets() throws(Refusal) {
    let openers = ["(": ")", "[": "]", "{": "}"]
    var open: [Int] = []
    for index in tokens.indices where tokens[index].kind == .sign {
      let text = tokens[index].text
      if openers[text] != nil {
        open.append(index)
      } else if openers.values.contains(text) {
        guard let opener = open.popLast(), openers[tokens[opener].text] == text else {
          throw Refusal(path, tokens[index], "'\(text)' closes nothing")
        }
        tokens[index].partner = opener
        tokens[opener].partner = index
      }
    }
    if let opener = open.last {
      throw Refusal(path, tokens[opener], "'\(tokens[opener].text)' is not closed")
    }
  }
}
