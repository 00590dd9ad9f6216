import Testing

@testable import DirectCodingGenerator

/// What the generator does not know is refused, with its place and the reason.
@Suite struct RefusalTests {
  private func expectRefusal(
    _ text: String, _ expected: String, beside others: [String] = [],
    at place: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try refusals(of: text, beside: others) == [expected], sourceLocation: place)
  }

  @Test(
    "A property that is not known is refused.",
    arguments: [
      ("var x = f()", "1:32: S.x has no type that is written out"),
      ("var x = [1].first", "1:32: S.x has no type that is written out"),
      ("var x = -f", "1:32: S.x has no type that is written out"),
      ("var x, y = 1", "1:32: S.x has no type that is written out"),
      ("var x: (Int, Int)", "1:32: S.x is a tuple"),
      ("var x: ()", "1:32: S.x is a tuple"),
      ("var x: (Int) async throws(E) -> [Int: (Int) -> Int]", "1:32: S.x is a function"),
      ("var x: String??", "1:32: S.x is an optional of an optional"),
      ("var x: Optional<Swift.Optional<[Int]>>", "1:32: S.x is an optional of an optional"),
      ("var x: Optional<Int>?", "1:32: S.x is an optional of an optional"),
      ("@Wrapped var x: Int", "1:41: S.x has @Wrapped, which may be a property wrapper"),
      (
        "@A.B<Int>(\"}\") var x: Int",
        "1:47: S.x has @A.B<Int>(\"}\"), which may be a property wrapper"
      ),
      ("weak var x: C?", "1:37: S.x has 'weak'"),
      ("unowned(safe) var x: C", "1:46: S.x has 'unowned(safe)'"),
      (
        "private var x: Int",
        "1:40: S.x is private, so that code in another file cannot set it; "
          + "use --in-file, or make it internal"
      ),
      (
        "public fileprivate(set) var x: Int",
        "1:56: S.x is private, so that code in another file cannot set it; "
          + "use --in-file, or make it internal"
      ),
      ("var (x, y): (Int, Int)", "1:32: a pattern of several properties"),
      (
        "#if A\nvar x: Int\n#endif",
        "1:28: '#if' within a type: which fields it has depends on "
          + "a condition or a macro"
      ),
      (
        "#fields(3)",
        "1:28: '#fields' within a type: which fields it has depends on "
          + "a condition or a macro"
      ),
      ("case x", "1:28: 'case' is not known here"),
      ("x", "1:28: 'x' is not known here"),
      ("", "1:8: S has no field to save"),
      ("static var x: Int = 1; lazy var y = 1; var z: Int { 1 }", "1:8: S has no field to save"),
      ("func f()", "1:35: the body of a function is expected"),
    ])
  func properties(members: String, reason: String) throws {
    // The members begin in column 28.
    try expectRefusal("struct S: Codable,Sendable{\(members)\n}", "A.swift:\(reason)")
  }

  @Test("A declaration that is not known is refused.")
  func declarations() throws {
    let body = "{ var x: Int }"
    try expectRefusal(
      "#if DEBUG\nstruct S: Codable, Sendable \(body)\n#endif", "A.swift:2:8: S is within #if")
    try expectRefusal(
      "@Observed(1) struct S: Codable, Sendable \(body)",
      "A.swift:1:21: S has @Observed(1), which may be a macro or an actor")
    try expectRefusal(
      "struct S: Codable \(body)",
      "A.swift:1:8: S must name Sendable, which DirectCoding requires, as a protocol")
    try expectRefusal(
      "struct S<T>: Sendable { var x: T }\nextension S: Codable where T: Codable {}",
      "A.swift:2:11: S is Codable under a condition")
  }

  @Test("A type that codes itself is refused, wherever that is written.")
  func ownCoding() throws {
    let decoding = "init(from decoder: any Decoder) throws { x = 1 }"
    let encoding = "public func encode(to encoder: Encoder) throws {}"
    func own(_ name: String) -> String {
      "S has \(name) of its own; only what the compiler makes can be matched"
    }
    let whole = "struct S: Codable, Sendable { var x: Int }"
    for (function, place, name) in [(decoding, 0, "init(from:)"), (encoding, 7, "encode(to:)")] {
      try expectRefusal(
        "struct S: Codable, Sendable { var x: Int; \(function) }",
        "A.swift:1:\(43 + place): \(own(name))")
      let addition = "extension S { \(function) }"
      try expectRefusal("\(whole)\n\(addition)", "A.swift:2:\(15 + place): \(own(name))")
      try expectRefusal(whole, "B1.swift:1:\(15 + place): \(own(name))", beside: ["", addition])
    }
    #expect(try refusals(of: whole, beside: ["extension T.S { \(decoding) }"]) == [])
    try expectRefusal(
      "struct S: Codable, Sendable { var x: Int; func write(to fields: inout FieldWriter) {} }",
      "A.swift:1:43: S has write(to:) for DirectCoding here; remove it")
    try expectRefusal(
      whole, "B0.swift:1:11: S conforms to DirectCoding here; remove that",
      beside: ["extension S: DirectCoding {}"])
  }

  @Test("Coding keys that are not a plain enum are refused.")
  func codingKeys() throws {
    func expectKeys(
      _ keys: String, _ reason: String, at place: SourceLocation = #_sourceLocation
    ) throws {
      try expectRefusal(
        "struct S: Codable, Sendable { var x: Int\n\(keys)\n}", "A.swift:\(reason)", at: place)
    }
    let unknown = "CodingKeys is not an enum"
    try expectKeys("typealias CodingKeys = K", "2:1: \(unknown) that is declared here")
    try expectKeys(
      "struct CodingKeys: CodingKey {}", "2:1: \(unknown) of CodingKey without or with strings")
    try expectKeys(
      "enum CodingKeys: Int, CodingKey { case x }",
      "2:1: \(unknown) of CodingKey without or with strings")
    try expectKeys(
      "enum CodingKeys: CodingKey { case x; var stringValue: String { \"\" } }",
      "2:38: CodingKeys has more than cases")
    try expectKeys(
      "enum CodingKeys: String, CodingKey { case x = name }",
      "2:47: a string in one line is expected")
    try expectKeys(
      "enum CodingKeys: CodingKey { case x, y }", "2:38: CodingKeys.y is not a property of S")
    try expectKeys("enum CodingKeys: CodingKey {}", "1:8: S has no field to save")
  }

  @Test("A file that is not Swift, or has no struct for it, is refused.")
  func files() throws {
    let none =
      "A.swift:1:1: no struct, and no enum without raw values, names Codable here, "
      + "except private ones"
    try expectRefusal("", none)
    try expectRefusal("struct S { var x: Int }\nenum E: String, Codable { case a }", none)
    try expectRefusal("private struct S: Codable, Sendable { var x: Int }", none)
    try expectRefusal("fileprivate enum E { struct S: Codable, Sendable { var x: Int } }", none)
    try expectRefusal("private enum E {}; extension E { struct S: Codable, Sendable {} }", none)
    try expectRefusal("func f() {\n  (1, [2}\n}", "A.swift:2:9: '}' closes nothing")
    try expectRefusal("struct S {", "A.swift:1:10: '{' is not closed")
    try expectRefusal("let a = \"b", "A.swift:1:9: this string has no end")
    try expectRefusal("let a = \"\"\"  \n\\(1", "A.swift:1:9: this string has no end")
    try expectRefusal("let a = #\"b\"", "A.swift:1:9: this string has no end")
    try expectRefusal("/* /* */", "A.swift:1:1: this comment has no end")
    try expectRefusal("var `a", "A.swift:1:5: this name has no closing backtick")
    try expectRefusal("let a = #/b", "A.swift:1:9: this regex literal has no end")
  }
}
