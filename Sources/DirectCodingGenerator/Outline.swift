/// The structs, enums and extensions of a file, at all levels but within functions.
struct Outline {
  /// A type's declaration, or an extension of a type.
  struct Part {
    enum Kind { case structure, enumeration, extending, other }

    var kind: Kind
    /// The name, preceded by the types around it: `Outer.Inner`.
    var name: String
    /// The token of the name.
    var token: Token
    var prefix: Prefix
    var access: Access
    var inherited: [String]
    var isGenericExtension = false
    /// Whether it is within `#if`.
    var isConditional: Bool
    /// Whether this or a type around it is `nonisolated`.
    var isNonisolated: Bool
    /// The `@available` attributes of this and the types around it.
    var availability: [String]
    /// The indexes of the tokens within the braces.
    var body: Range<Int>

    var isCodable: Bool {
      let names = Set(inherited)
      return !names.isDisjoint(with: ["Codable", "DirectCoding", "DirectEnum"])
        || names.isSuperset(of: ["Encodable", "Decodable"])
    }
  }

  let path: String
  let tokens: [Token]
  private(set) var parts: [Part] = []

  init(of text: String, path: String) throws(Refusal) {
    self.path = path
    tokens = try Lexer.tokens(of: text, path: path)
    try scan(tokens.indices, within: nil)
  }

  func cursor(in part: Part) -> Cursor { Cursor(path, tokens, part.body) }

  /// Refuses a file that does not import the module of `DirectCoding`.
  func checkImport() throws(Refusal) {
    let isThere = tokens.indices.dropLast().contains {
      tokens[$0].isWord("import") && tokens[$0 + 1].isWord("Larder")
    }
    guard isThere else {
      throw Refusal(path, nil, "this file must import Larder, for the functions within it")
    }
  }

  private mutating func scan(_ range: Range<Int>, within outer: Part?) throws(Refusal) {
    var cursor = Cursor(path, tokens, range)
    var conditions = 0
    while let token = cursor.next {
      if token.text == "#if" { conditions += 1 }
      if token.text == "#endif" { conditions -= 1 }
      if cursor.previous?.isSign(".") == true {
        cursor.skip()
        continue
      }
      let prefix = Prefix.parse(&cursor)
      if cursor.next?.isWord("import") == true {
        // `import struct Module.Name`
        cursor.at += 2
        continue
      }
      guard let word = cursor.next, word.kind == .word,
        ["struct", "enum", "class", "actor", "extension", "protocol"].contains(word.text),
        let name = cursor.following, name.kind == .word
      else {
        cursor.skip()
        continue
      }
      cursor.at += 1
      guard let part = try part(word, prefix, &cursor, within: outer, conditions > 0) else {
        continue
      }
      parts.append(part)
      try scan(part.body, within: part)
    }
  }

  /// Parses a declaration from its name on; nil if that is a variable named `actor`, for example.
  private func part(
    _ word: Token, _ prefix: Prefix, _ cursor: inout Cursor, within outer: Part?,
    _ isConditional: Bool
  ) throws(Refusal) -> Part? {
    guard let token = cursor.next else { return nil }
    var names: [String] = outer.map { [$0.name] } ?? []
    names.append(token.text)
    cursor.at += 1
    var isGeneric = false
    while true {
      if cursor.isAtSign("<") {
        cursor.skipGenericArguments()
        isGeneric = true
      } else if cursor.isAtSign("."), let next = cursor.following {
        names.append(next.text)
        cursor.at += 2
      } else if cursor.take("?") {
        // An extension of an optional, which is another type.
        names[names.count - 1] += "?"
      } else {
        break
      }
    }
    let inherited = cursor.isAtSign(":") ? inheritance(&cursor) : []
    if cursor.next?.isWord("where") == true {
      if word.text == "extension" { isGeneric = true }
      while let next = cursor.next, !next.isSign("{") { cursor.skip() }
    }
    guard let close = cursor.next?.partner, cursor.isAtSign("{") else {
      guard word.text != "actor" else { return nil }
      throw cursor.refusal(
        "the braces of \(word.text) \(names.joined(separator: ".")) are expected")
    }
    defer { cursor.at = close + 1 }
    // Members of an extension have its access level by default.
    let level = outer?.kind == .extending ? outer?.prefix.access : nil
    let own = prefix.access ?? (word.text == "extension" ? .open : level ?? .internal)
    let kinds: [String: Part.Kind] = [
      "struct": .structure, "enum": .enumeration, "extension": .extending,
    ]
    return Part(
      kind: kinds[word.text] ?? .other,
      name: names.joined(separator: "."), token: token, prefix: prefix,
      access: min(own, outer?.access ?? .open), inherited: inherited,
      isGenericExtension: word.text == "extension" && isGeneric,
      isConditional: isConditional || outer?.isConditional == true,
      isNonisolated: prefix.modifiers.contains("nonisolated") || outer?.isNonisolated == true,
      availability: (outer?.availability ?? [])
        + prefix.attributes.filter { $0.hasPrefix("@available") },
      body: (cursor.at + 1)..<close)
  }

  /// The names in an inheritance clause, without the modules before them.
  private func inheritance(_ cursor: inout Cursor) -> [String] {
    var names: [String] = []
    cursor.at += 1
    while let token = cursor.next, !token.isSign("{"), !token.isWord("where") {
      if token.isSign("<") {
        cursor.skipGenericArguments()
      } else if token.isSign("@") {
        cursor.at += 2
      } else if token.isSign("~") {
        cursor.at += 2
      } else {
        let isLast = cursor.following?.isSign(".") != true
        if token.kind == .word, isLast { names.append(token.name) }
        cursor.skip()
      }
    }
    return names
  }
}
