import Foundation
import Testing

@testable import DirectCodingGenerator

/// `--check` finds generated files that do not match their structs any more.
@Suite struct CheckTests {
  private static let song = """
    struct Song: Codable, Sendable {
      var id: Int
      var title: String
      var note: String?
    }
    """

  /// The complaints after a change of the struct, without the last one, which names the command.
  private func complaints(replacing old: String, with new: String) throws -> [String] {
    let generation = try Generation(["A.swift": Self.song])
    #expect(generation.run().status == 0)
    #expect(generation.run(["--check"]).status == 0)
    let changed = Self.song.replacing(old, with: new)
    #expect(changed != Self.song)
    try generation.write(changed, to: "A.swift")
    let outcome = generation.run(["--check"])
    #expect(outcome.status == 1)
    var complaints = generation.complaints(outcome)
    #expect(
      complaints.popLast()
        == "A+DirectCoding.swift: run 'swift package generate-direct-coding A.swift'")
    #expect(generation.run().status == 0)
    #expect(generation.run(["--check"]).status == 0, "after it was generated again")
    return complaints.map { $0.replacing(": error", with: "") }
  }

  @Test(
    "A changed field is named, with its type and its place.",
    arguments: [
      ("var id: Int", "var id: Int; var year: Int", "2:20: Song.year is missing in %"),
      ("var note: String?", "var note: String?; var z = 1", "4:26: Song.z is missing in %"),
      ("var id: Int\n", "\n", "%:13:18: Song.id is not a saved property in A.swift any more"),
      ("var id: Int", "var key: Int", "2:7: Song.key is missing in %"),
      ("String?", "String", "4:7: Song.note is not optional, unlike in %"),
      ("title: String", "title: String?", "3:7: Song.title is optional, unlike in %"),
      (
        "var id: Int\n  var title: String", "var title: String\n  var id: Int",
        "2:7: Song.title has another place in %"
      ),
      ("var id: Int", "let id: Int = 1", "2:7: Song.id is a constant with a value, unlike in %"),
      (
        "?\n", "?\n  enum CodingKeys: String, CodingKey { case id = \"i\", title, note }\n",
        "2:7: Song.id has another name in %"
      ),
      (
        "?\n", "?\n  enum CodingKeys: CodingKey { case id, title }\n",
        "%:15:27: Song.note is not a saved property in A.swift any more"
      ),
      ("struct Song", "struct Track", "1:8: Track is missing in %"),
      (
        "struct Song", "private struct Old: Codable {}\npublic struct Song",
        "%:3:1: this is not what is generated from A.swift now"
      ),
    ])
  func changedField(old: String, new: String, expected: String) throws {
    let target = "A+DirectCoding.swift"
    let complaint =
      expected.hasPrefix("%")
      ? target + expected.dropFirst() : "A.swift:" + expected.replacing("%", with: target)
    #expect(try complaints(replacing: old, with: new).first == complaint)
  }

  @Test("An added and a removed struct are named.")
  func structs() throws {
    #expect(
      try complaints(replacing: "struct Song", with: "struct Track") == [
        "A.swift:1:8: Track is missing in A+DirectCoding.swift",
        "A+DirectCoding.swift:5:11: A.swift has no type Song that is Codable",
      ])
  }

  @Test("A function that was changed by hand is found.")
  func changedByHand() throws {
    let generation = try Generation(["A.swift": Self.song])
    #expect(generation.run().status == 0)
    let text = try generation.text("A+DirectCoding.swift")
    for (old, new) in [
      ("    note = try fields.readIfPresent(\"note\")\n", ""),
      ("title = try fields.read(\"title\")", "title = try fields.read(\"id\")"),
      ("fields.write(id, as: \"id\")", "fields.write(id, as: \"ID\")"),
      ("fields.write(id, as: \"id\")", "fields.write(id, as: \"id\"); count += 1"),
      ("fields.write(id, as: \"id\")\n", ""),
      ("import Larder", "public import Larder"),
      ("extension", "@available(macOS 15, *) extension"),
    ] {
      let changed = text.replacing(old, with: new)
      #expect(changed != text)
      try generation.write(changed, to: "A+DirectCoding.swift")
      #expect(generation.run(["--check"]).status == 1, "\(new)")
    }
  }

  @Test("Comments and white space in a generated file may differ.")
  func formatting() throws {
    let generation = try Generation(["A.swift": Self.song])
    #expect(generation.run().status == 0)
    let text = try generation.text("A+DirectCoding.swift")
    let formatted = "// A licence.\n" + text.replacing("  ", with: "\t").replacing("(", with: "( ")
    try generation.write(formatted, to: "A+DirectCoding.swift")
    #expect(generation.run(["--check"]).status == 0)
  }

  @Test("Without files, the generated files beside are checked, and the others are not.")
  func allFiles() throws {
    let generation = try Generation([
      "A.swift": Self.song, "B.swift": Self.song.replacing("Song", with: "B"),
      "C.swift": Self.song.replacing("Song", with: "C"), "C+DirectCoding.swift": "// By hand.\n",
    ])
    #expect(generation.run([], ["A.swift", "B.swift"]).status == 0)
    let all = ["A", "B", "C"].flatMap { ["\($0).swift", "\($0)+DirectCoding.swift"] }
    #expect(generation.run(["--check"], [], beside: all).status == 0)
    for name in ["A", "B"] {
      try generation.write(try generation.text("\(name).swift") + "\n}", to: "\(name).swift")
      #expect(generation.run(["--check"], [], beside: all).status == 1)
      try generation.write("struct Z: Codable, Sendable { var z: Int }", to: "\(name).swift")
      let outcome = generation.run(["--check"], [], beside: all)
      #expect(generation.complaints(outcome).contains { $0.contains("Z is missing in \(name)+") })
      #expect(generation.run([], [], beside: all).status == 0)
    }
    #expect(generation.run([], ["C.swift"]).status == 1, "it is not overwritten")
    #expect(try generation.text("C+DirectCoding.swift") == "// By hand.\n")
  }

  @Test("A struct without generated functions fails the check.")
  func missingFile() throws {
    let generation = try Generation(["A.swift": Self.song])
    let outcome = generation.run(["--check"])
    #expect(outcome.status == 1)
    #expect(
      generation.complaints(outcome) == [
        "A+DirectCoding.swift: error: this file is missing; "
          + "run 'swift package generate-direct-coding A.swift'"
      ])
  }
}
