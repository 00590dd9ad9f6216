/// A stored property of a struct.
struct Property {
  /// The token of the name, with backticks if it is written with them.
  var token: Token
  var isConstant: Bool
  var hasValue: Bool
  /// What is known of its type; nil if the type is neither written nor clear from a literal.
  var type: TypeForm?
  /// The access level at which it can be set.
  var access: Access
  /// Attributes and modifiers that the generator does not know.
  var unknownPrefix: String?

  var name: String { token.name }
}

/// A case of an enum.
struct EnumCase {
  /// The token of the name, with backticks if it is written with them.
  var token: Token
  /// The values of the case, each with its label unless it has none.
  var values: [(label: Token?, type: TypeForm)] = []
  /// What the generator does not know of the case.
  var unknown: String?
}

/// What the generator must know of a property's type.
enum TypeForm { case plain, optional, doubleOptional, tuple, function }

/// The members of a struct or enum, or of an extension of one, that matter to its coding.
struct Members {
  var properties: [Property] = []
  var cases: [EnumCase] = []
  /// Whether the cases have raw values.
  var hasRawValues = false
  /// The name of `init(from:)` or `encode(to:)`, and where it is declared.
  var codable: (name: String, token: Token)?
  /// The name of a function of `DirectCoding`, and where it is declared.
  var direct: (name: String, token: Token)?
  /// The cases of `CodingKeys`, with the literals that they are renamed by.
  var keys: [(name: String, literal: String?, token: Token)]?
  /// A type that may name the values of one case.
  var keysOfCase: Token?

  /// Parses the body of a struct, of an enum, or of an extension.
  static func parse(_ cursor: Cursor, ofEnum isEnum: Bool = false) throws(Refusal) -> Members {
    var parser = MemberParser(cursor: cursor, isEnum: isEnum)
    return try parser.parse()
  }
}

private struct MemberParser {
  var cursor: Cursor
  let isEnum: Bool
  var members = Members()

  mutating func parse() throws(Refusal) -> Members {
    while let token = cursor.next {
      if cursor.take(";") { continue }
      let prefix = Prefix.parse(&cursor)
      guard let word = cursor.next else { throw cursor.refusal("a declaration is expected") }
      switch word.kind == .word ? word.text : "" {
      case "var", "let": try variables(prefix)
      case "func", "init", "subscript": try function(word)
      case "struct", "enum", "class", "actor", "protocol", "extension": try type(word)
      case "case" where isEnum: try cases(prefix)
      case "typealias":
        if cursor.following?.name == "CodingKeys" {
          throw cursor.refusal("CodingKeys is not an enum that is declared here")
        }
        cursor.at += 1
        while cursor.next != nil, !cursor.isAtSign("=") { cursor.skip() }
        cursor.at += 1
        _ = try TypeParser.parse(&cursor)
      default:
        if token.text.hasPrefix("#") {
          throw cursor.refusal(
            "'\(token.text)' within a type: which fields it has depends on a condition or a macro"
          )
        }
        throw cursor.refusal("'\(word.text)' is not known here")
      }
    }
    return members
  }

  private mutating func function(_ word: Token) throws(Refusal) {
    let start = cursor.at
    while let next = cursor.next, !next.isSign("{") { cursor.skip() }
    guard cursor.isAtSign("{") else { throw cursor.refusal("the body of a function is expected") }
    let head = cursor.tokens[start..<cursor.at].map(\.text)
    cursor.skip()
    func has(_ words: [String]) -> Bool { head.starts(with: words) }
    if word.text == "init", head.contains("from") {
      if head.contains("Decoder") { members.codable = ("init(from:)", word) }
      if head.contains("FieldReader") { members.direct = ("init(from:)", word) }
    } else if has(["func", "encode", "(", "to"]), head.contains("Encoder") {
      members.codable = ("encode(to:)", word)
    } else if has(["func", "write", "(", "to"]), head.contains("FieldWriter") {
      members.direct = ("write(to:)", word)
    }
  }

  private mutating func type(_ word: Token) throws(Refusal) {
    let name = cursor.following?.name
    let start = cursor.at
    while let next = cursor.next, !next.isSign("{") { cursor.skip() }
    guard let close = cursor.next?.partner else { throw cursor.refusal("a body is expected") }
    if let name, name != "CodingKeys", name.hasSuffix("CodingKeys") { members.keysOfCase = word }
    if name == "CodingKeys" {
      let head = cursor.tokens[start..<cursor.at].map(\.text)
      guard word.text == "enum", head.contains("CodingKey"), !head.contains("Int") else {
        throw Refusal(
          cursor.path, word, "CodingKeys is not an enum of CodingKey without or with strings")
      }
      members.keys = try keys((cursor.at + 1)..<close)
    }
    cursor.skip()
  }

  private func keys(
    _ range: Range<Int>
  ) throws(Refusal) -> [(name: String, literal: String?, token: Token)] {
    var keys: [(name: String, literal: String?, token: Token)] = []
    var cursor = Cursor(cursor.path, cursor.tokens, range)
    while cursor.next != nil {
      if cursor.take(";") { continue }
      guard cursor.next?.isWord("case") == true else {
        throw cursor.refusal("CodingKeys has more than cases")
      }
      repeat {
        cursor.at += 1
        guard let token = cursor.next, token.kind == .word else {
          throw cursor.refusal("the name of a coding key is expected")
        }
        cursor.at += 1
        var literal: String?
        if cursor.take("=") {
          guard let text = cursor.next, text.kind == .string, !text.text.contains("\"\"\"") else {
            throw cursor.refusal("a string in one line is expected")
          }
          literal = text.text
          cursor.at += 1
        }
        keys.append((token.name, literal, token))
      } while cursor.isAtSign(",")
    }
    return keys
  }
}

// MARK: - Cases

extension MemberParser {
  private mutating func cases(_ prefix: Prefix) throws(Refusal) {
    repeat {
      cursor.at += 1
      guard let token = cursor.next, token.kind == .word else {
        throw cursor.refusal("the name of a case is expected")
      }
      cursor.at += 1
      var new = EnumCase(token: token)
      new.unknown =
        prefix.attributes.first ?? prefix.modifiers.first { $0 != "indirect" }.map { "'\($0)'" }
      if cursor.isAtSign("("), let close = cursor.next?.partner {
        try values(of: &new, Cursor(cursor.path, cursor.tokens, (cursor.at + 1)..<close))
        cursor.skip()
      }
      if cursor.take("=") {
        members.hasRawValues = true
        cursor.skipExpression()
      }
      members.cases.append(new)
    } while cursor.isAtSign(",")
  }

  private func values(of new: inout EnumCase, _ values: Cursor) throws(Refusal) {
    var cursor = values
    while cursor.next != nil {
      var label: Token?
      if let word = cursor.next, word.kind == .word, cursor.following?.isSign(":") == true {
        label = word
        cursor.at += 2
      } else if cursor.next?.kind == .word, cursor.following?.kind == .word {
        new.unknown = "a value with two names"
        return
      }
      new.values.append((label, try TypeParser.parse(&cursor)))
      if cursor.take("=") { cursor.skipExpression() }
      guard cursor.next == nil || cursor.take(",") else {
        throw cursor.refusal("the end of a value is expected")
      }
    }
  }
}

// MARK: - Variables

extension MemberParser {
  private static let knownModifiers: Set = [
    "public", "package", "internal", "fileprivate", "private", "final", "nonisolated", "static",
    "class", "private(set)", "fileprivate(set)", "internal(set)", "package(set)", "public(set)",
  ]

  private mutating func variables(_ prefix: Prefix) throws(Refusal) {
    let isConstant = cursor.next?.text == "let"
    let isStored = !prefix.isOfType && !prefix.modifiers.contains("lazy")
    var untyped: [Int] = []
    repeat {
      cursor.at += 1
      guard let token = cursor.next, token.kind == .word || !isStored else {
        throw cursor.refusal("a pattern of several properties")
      }
      cursor.skip()
      var property = Property(
        token: token, isConstant: isConstant, hasValue: false, access: access(prefix),
        unknownPrefix: unknown(prefix))
      let hasType = cursor.take(":")
      if hasType { property.type = try TypeParser.parse(&cursor) }
      if cursor.take("=") {
        property.hasValue = true
        let start = cursor.at
        cursor.skipExpression()
        if !hasType { property.type = literalType(start..<cursor.at) }
      }
      if cursor.isAtSign("{") {
        let isObserved = cursor.isAtObservers
        cursor.skip()
        if !isObserved { return }
      }
      guard isStored else { continue }
      if hasType {
        for index in untyped { members.properties[index].type = property.type }
        untyped = []
      } else if !property.hasValue {
        untyped.append(members.properties.count)
      }
      members.properties.append(property)
    } while cursor.isAtSign(",")
  }

  /// The type of an initial value that is one literal; nil for any other value.
  private func literalType(_ range: Range<Int>) -> TypeForm? {
    var tokens = cursor.tokens[range]
    if tokens.first?.isSign("-") == true { tokens = tokens.dropFirst() }
    guard let first = tokens.first else { return nil }
    let isWhole = tokens.count == 1 || first.isSign("[") && first.partner == range.upperBound - 1
    let isLiteral =
      first.kind == .number || first.kind == .string || ["true", "false", "["].contains(first.text)
    return isWhole && isLiteral ? .plain : nil
  }

  private func access(_ prefix: Prefix) -> Access {
    let setter = prefix.modifiers.first { $0.hasSuffix("(set)") }
      .flatMap { Access(String($0.dropLast(5))) }
    return min(prefix.access ?? .internal, setter ?? .open)
  }

  private func unknown(_ prefix: Prefix) -> String? {
    let wrapper = prefix.attributes.first {
      !$0.hasPrefix("@available") && $0 != "@usableFromInline"
    }
    if let wrapper { return "\(wrapper), which may be a property wrapper" }
    return prefix.modifiers.first { !Self.knownModifiers.contains($0) }.map { "'\($0)'" }
  }
}

extension Cursor {
  /// Whether the braces that come next hold `willSet` or `didSet`, and no accessors.
  var isAtObservers: Bool {
    guard let close = next?.partner, isAtSign("{") else { return false }
    var body = Cursor(path, tokens, (at + 1)..<close)
    _ = Prefix.parse(&body)
    return body.next.map { $0.isWord("willSet") || $0.isWord("didSet") } ?? false
  }

  /// Moves past an initial value.
  mutating func skipExpression() {
    while let token = next {
      if token.isSign(",") || token.isSign(";") || isAtObservers { return }
      if token.startsLine, !continuesLine(token) { return }
      if token.isSign("<"), !token.hasSpaceBefore { skipGenericArguments() } else { skip() }
    }
  }

  /// Whether the first token of a line belongs to the expression that began before it.
  private func continuesLine(_ token: Token) -> Bool {
    let declarations: Set = [
      "var", "let", "func", "init", "subscript", "struct", "enum", "class", "actor", "extension",
      "protocol", "typealias",
    ]
    if declarations.contains(token.text) || token.isSign("@") { return false }
    let openWords: Set = ["try", "await", "in", "as", "is", "if", "switch", "else"]
    if at > 1, !tokens[at - 2].isSign("."),
      openWords.contains(tokens[at - 1].text) || tokens[at - 1].isSign("=") || isInfix(at: at - 1)
    {
      return true
    }
    if token.isSign(".") || token.isSign("{") || isInfix(at: at) { return true }
    return ["as", "is", "else", "catch"].contains(token.text)
  }

  /// Whether a token is, or ends or begins, an operator with spaces on both sides.
  private func isInfix(at index: Int) -> Bool {
    func isOperator(_ token: Token) -> Bool {
      token.kind == .sign && token.partner == nil && ![",", ";", "@"].contains(token.text)
        && !token.text.hasPrefix("#")
    }
    guard tokens.indices.contains(index), isOperator(tokens[index]) else { return false }
    var (first, last) = (index, index)
    while first > 0, !tokens[first].hasSpaceBefore, isOperator(tokens[first - 1]) { first -= 1 }
    while last + 1 < tokens.count, !tokens[last + 1].hasSpaceBefore, isOperator(tokens[last + 1]) {
      last += 1
    }
    return tokens[first].hasSpaceBefore && last + 1 < tokens.count
      && tokens[last + 1].hasSpaceBefore
  }
}
