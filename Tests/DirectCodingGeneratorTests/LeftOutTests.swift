import Testing

@testable import DirectCodingGenerator

/// A struct that the generator does not know is left out, and the others of its file are not.
@Suite struct LeftOutTests {
  private static let fit = "struct %: Codable, Sendable { var x: Int }\n"
  private static let mixed =
    fit.replacing("%", with: "A") + "struct B: Codable, Sendable { var b: (Int, Int) }\n"
    + "struct C: Codable { var x: Int }\n" + fit.replacing("%", with: "D")
  private static let warnings = [
    "A.swift:2:35: warning: B.b is a tuple; B is left out",
    "A.swift:3:8: warning: C must name Sendable, which DirectCoding requires, as a protocol; "
      + "C is left out",
  ]

  @Test("What is left out is a warning with its place and reason; the rest is written.")
  func written() throws {
    let generation = try Generation(["A.swift": Self.mixed])
    let outcome = generation.run()
    #expect(outcome.status == 0)
    #expect(generation.complaints(outcome) == Self.warnings)
    let text = try generation.text("A+DirectCoding.swift")
    #expect(
      text.split(separator: "\n").filter { $0.hasPrefix("extension") } == [
        "extension A: DirectCoding {", "extension D: DirectCoding {",
      ])
    let checked = generation.run(["--check"])
    #expect(checked.status == 0)
    #expect(generation.complaints(checked) == Self.warnings)
    let printed = generation.run(["--print"])
    #expect((printed.status, printed.output) == (0, text))
    #expect(generation.complaints(printed) == Self.warnings)
  }

  @Test("The check fails if a struct with functions has to be left out now, or need not any more.")
  func changed() throws {
    let generation = try Generation(["A.swift": Self.mixed])
    #expect(generation.run().status == 0)
    try generation.write(Self.mixed.replacing("x: Int", with: "x: () -> Int"), to: "A.swift")
    #expect(generation.run(["--check"]).status == 1, "all are left out")
    let unfit = Self.mixed.replacing("D: Codable, Sendable", with: "D: Codable")
    try generation.write(unfit, to: "A.swift")
    let checked = generation.run(["--check"])
    #expect(checked.status == 1)
    #expect(
      generation.complaints(checked).suffix(2) == [
        "A+DirectCoding.swift:15:11: error: D is left out now: D must name Sendable, "
          + "which DirectCoding requires, as a protocol",
        "A+DirectCoding.swift: run 'swift package generate-direct-coding A.swift'",
      ])
    #expect(generation.run().status == 0)
    #expect(generation.run(["--check"]).status == 0)
    try generation.write(Self.mixed.replacing("(Int, Int)", with: "[Int]"), to: "A.swift")
    let again = generation.run(["--check"])
    #expect(again.status == 1)
    #expect(
      generation.complaints(again).contains(
        "A.swift:2:8: error: B is missing in A+DirectCoding.swift"))
  }

  @Test("If all structs of a file are refused, nothing is written for any file.")
  func allUnfit() throws {
    let generation = try Generation([
      "A.swift": Self.fit.replacing("%", with: "A"),
      "B.swift": "struct B: Codable {}\nstruct C: Codable {}\n",
    ])
    let outcome = generation.run([], ["A.swift", "B.swift"])
    #expect(outcome.status == 1)
    #expect(
      generation.complaints(outcome).map { $0.prefix(21) } == [
        "B.swift:1:8: error: B", "B.swift:2:8: error: C",
      ])
    #expect(throws: (any Error).self) { try generation.text("A+DirectCoding.swift") }
  }
}
