/// A position among the tokens of a file, with the steps that its parsers share.
struct Cursor {
  let path: String
  let tokens: [Token]
  /// The index of the next token.
  var at: Int
  /// The index behind the last token that belongs to the cursor.
  let end: Int

  init(_ path: String, _ tokens: [Token], _ range: Range<Int>? = nil) {
    (self.path, self.tokens) = (path, tokens)
    (at, end) = (range?.lowerBound ?? 0, range?.upperBound ?? tokens.count)
  }

  var next: Token? { at < end ? tokens[at] : nil }
  var following: Token? { at + 1 < end ? tokens[at + 1] : nil }
  var previous: Token? { at > 0 ? tokens[at - 1] : nil }

  func isAtSign(_ sign: String) -> Bool { next?.isSign(sign) == true }

  /// Moves past the sign if it comes next.
  mutating func take(_ sign: String) -> Bool {
    guard isAtSign(sign) else { return false }
    at += 1
    return true
  }

  /// Moves past one token, or past everything in brackets.
  mutating func skip() {
    if let partner = next?.partner, partner > at { at = partner }
    at += 1
  }

  func refusal(_ reason: String) -> Refusal {
    Refusal(path, next ?? previous, reason)
  }
}

/// The attributes and modifiers before a declaration.
struct Prefix {
  /// Each attribute, with its arguments.
  var attributes: [String] = []
  var modifiers: [String] = []

  private static let words: Set = [
    "public", "package", "internal", "fileprivate", "private", "open", "final", "static", "lazy",
    "weak", "unowned", "nonisolated", "mutating", "nonmutating", "consuming", "borrowing",
    "override", "required", "convenience", "dynamic", "indirect", "prefix", "postfix", "infix",
    "distributed", "sending", "isolated", "optional",
  ]

  /// The access level; nil if the source does not write one.
  var access: Access? { modifiers.compactMap { Access($0) }.first }

  var isOfType: Bool { modifiers.contains("static") || modifiers.contains("class") }

  /// Moves past the attributes and modifiers that come next.
  static func parse(_ cursor: inout Cursor) -> Prefix {
    var prefix = Prefix()
    while let token = cursor.next {
      if token.isSign("@") {
        prefix.attributes.append(attribute(&cursor))
      } else if token.kind == .word, words.contains(token.text) || isModifier(token, cursor) {
        var text = token.text
        cursor.at += 1
        if let open = cursor.next, open.isSign("("), !open.hasSpaceBefore {
          text += cursor.text { $0.skip() }
        }
        prefix.modifiers.append(text)
      } else {
        break
      }
    }
    return prefix
  }

  /// `class` is a modifier before a member.
  private static func isModifier(_ token: Token, _ cursor: Cursor) -> Bool {
    guard token.text == "class", let next = cursor.following else { return false }
    return ["var", "let", "func", "subscript"].contains(next.text) || words.contains(next.text)
  }

  private static func attribute(_ cursor: inout Cursor) -> String {
    cursor.text { cursor in
      cursor.at += 2
      while cursor.isAtSign("."), cursor.following?.kind == .word { cursor.at += 2 }
      if cursor.isAtSign("<") { cursor.skipGenericArguments() }
      if let open = cursor.next, open.isSign("("), !open.hasSpaceBefore { cursor.skip() }
    }
  }
}

extension Cursor {
  /// The text that a step moves past, with single spaces where there were spaces.
  mutating func text(_ step: (inout Cursor) -> Void) -> String {
    let start = at
    step(&self)
    return tokens[start..<min(at, end)].enumerated().reduce(into: "") { text, element in
      if element.offset > 0, element.element.hasSpaceBefore { text += " " }
      text += element.element.text
    }
  }

  /// Moves past `<...>`, or past the `<` alone if that is no list of generic arguments.
  mutating func skipGenericArguments() {
    let start = at
    var depth = 0
    while let token = next {
      if token.isSign("<") { depth += 1 }
      if token.isSign(">") { depth -= 1 }
      skip()
      if depth == 0 { return }
      let isPart =
        token.kind == .word
        || ["<", ">", ".", ",", "?", "!", "&", ":", "->", "[", "(", "~", "@"].contains(token.text)
      if !isPart { break }
    }
    at = start + 1
  }
}

/// How far a declaration can be seen.
enum Access: String, Comparable {
  case `private`, `fileprivate`, `internal`, `package`, `public`, open

  init?(_ modifier: String) { self.init(rawValue: modifier) }

  static func < (one: Access, other: Access) -> Bool { one.rank < other.rank }

  private var rank: Int {
    switch self {
    case .private: 0
    case .fileprivate: 1
    case .internal: 2
    case .package: 3
    case .public: 4
    case .open: 5
    }
  }
}
