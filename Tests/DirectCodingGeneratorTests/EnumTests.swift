import Testing

@testable import DirectCodingGenerator

/// The functions of enums.
@Suite struct EnumTests {
  private static let event = """
    indirect enum Event: Codable, Sendable {
      case opened(url: String, at: Date? = nil, Int)
      case note(String), closed
    }

    """

  @Test("The functions of an enum name its cases and their values.")
  func text() throws {
    let generation = try Generation(["A.swift": Self.event])
    #expect(
      generation.run(["--print"]).output == """
        // Generated from A.swift by `swift package generate-direct-coding`. Do not edit.

        import Larder

        extension Event: DirectEnum {
          init?(case name: String, from fields: inout FieldReader) throws {
            switch name {
            case "opened":
              self = .opened(
                url: try fields.read("url"),
                at: try fields.readIfPresent("at"),
                try fields.read("_2"))
            case "note":
              self = .note(try fields.read("_0"))
            case "closed":
              self = .closed
            default: return nil
            }
          }

          func write(to fields: inout FieldWriter) {
            switch self {
            case .opened(let value0, let value1, let value2):
              fields.writeCase("opened")
              fields.write(value0, as: "url")
              fields.writeIfPresent(value1, as: "at")
              fields.write(value2, as: "_2")
            case .note(let value0):
              fields.writeCase("note")
              fields.write(value0, as: "_0")
            case .closed:
              fields.writeCase("closed")
            }
          }
        }

        """)
  }

  @Test("Enums with raw values are left as they are, without a warning.")
  func rawValues() throws {
    let generation = try Generation([
      "A.swift": Self.event + "enum Mood: String, Codable { case a, b }\n"
        + "enum Level: Number, Codable { case a = 1, b }\n"
    ])
    let outcome = generation.run()
    #expect(outcome.status == 0)
    #expect(outcome.complaints.isEmpty)
    let text = try generation.text("A+DirectCoding.swift")
    #expect(!text.contains("Mood") && !text.contains("Level"))
    let none = "no struct, and no enum without raw values, names Codable here, except private ones"
    #expect(
      try refusals(of: "enum E: Number, Codable { case a = 1, b }") == ["A.swift:1:1: \(none)"])
  }

  @Test(
    "An enum that is not known is refused.",
    arguments: [
      ("case a((Int, Int))", "1:31: E.a has a tuple"),
      ("case a, b(x: () -> Int)", "1:34: E.b has a function"),
      ("case a(Int??)", "1:31: E.a has an optional of an optional"),
      ("case a(_ x: Int)", "1:31: E.a has a value with two names"),
      ("@available(macOS 15, *) case a", "1:55: E.a has @available(macOS 15, *)"),
      (
        "case a; enum CodingKeys: CodingKey {}", "1:31: E.a is not one of CodingKeys"
      ),
      (
        "case a(x: Int); enum ACodingKeys: CodingKey { case x }",
        "1:42: these may be coding keys of a case, which are not known"
      ),
      ("", "1:6: E has no case to save"),
      (
        "#if A\ncase a\n#endif",
        "1:26: '#if' within a type: which fields it has depends on a condition or a macro"
      ),
      (
        "case a; func encode(to encoder: any Encoder) throws {}",
        "1:34: E has encode(to:) of its own; only what the compiler makes can be matched"
      ),
      (
        "case a; func write(to fields: inout FieldWriter) {}",
        "1:34: E has write(to:) for DirectEnum here; remove it"
      ),
    ])
  func refusal(members: String, reason: String) throws {
    #expect(
      try refusals(of: "enum E: Codable,Sendable{\(members)\n}") == ["A.swift:\(reason)"])
  }

  @Test("An enum must name Sendable, and must not conform elsewhere.")
  func declarations() throws {
    #expect(
      try refusals(of: "enum E: Codable { case a }") == [
        "A.swift:1:6: E must name Sendable, which DirectEnum requires, as a protocol"
      ])
    #expect(
      try refusals(
        of: "enum E: Codable, Sendable { case a }", beside: ["extension E: DirectEnum {}"]) == [
          "B0.swift:1:11: E conforms to DirectEnum here; remove that"
        ])
  }

  @Test(
    "The check names a case that was added or removed.",
    arguments: [
      (
        "closed", "closed, new", "A.swift:3:30: error: Event.new is missing in A+DirectCoding.swift"
      ),
      (
        ", closed", "",
        "A+DirectCoding.swift:32:24: error: \"closed\" is not the name of a case of Event "
          + "in A.swift any more"
      ),
      ("at: Date?", "at: Date", "this is not what is generated from A.swift now"),
      ("Event", "Other", "A.swift:1:15: error: Other is missing in A+DirectCoding.swift"),
    ])
  func check(old: String, new: String, expected: String) throws {
    let generation = try Generation(["A.swift": Self.event])
    #expect(generation.run().status == 0)
    #expect(generation.run(["--check"]).status == 0)
    try generation.write(Self.event.replacing(old, with: new), to: "A.swift")
    let outcome = generation.run(["--check"])
    #expect(outcome.status == 1)
    #expect(generation.complaints(outcome).first?.hasSuffix(expected) == true)
    #expect(generation.run().status == 0)
    #expect(generation.run(["--check"]).status == 0)
  }
}
