import Foundation
import LarderTestSupport
import Testing

@testable import DirectCodingGenerator

/// The program behind `swift package generate-direct-coding`.
@Suite struct ToolTests {
  private struct Result {
    var status: Int32
    var output: String
    var complaints: String
  }

  private func run(_ arguments: [String]) throws -> Result {
    let process = Process()
    let program = try #require(ChildProcess.path(of: "generate-direct-coding"))
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    let (output, complaints) = (Pipe(), Pipe())
    (process.standardOutput, process.standardError) = (output, complaints)
    try process.run()
    let watch = ChildWatch(process.processIdentifier, "generate-direct-coding")
    defer { watch.end() }
    func text(_ pipe: Pipe) throws -> String {
      String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    }
    let (written, complained) = (try text(output), try text(complaints))
    process.waitUntilExit()
    return Result(status: process.terminationStatus, output: written, complaints: complained)
  }

  private let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  @Test("The models of these tests are what the program generates.")
  func forms() throws {
    let inFile = root.appending(path: "Tests/DirectCodingGeneratorTests/Models/InFile.swift").path
    let checkedInFile = try run(["--check", inFile])
    #expect(checkedInFile.status == 0)
    #expect(checkedInFile.complaints.hasSuffix("; Reference is left out\n"))
    let models = root.appending(path: "Tests/DirectCodingGeneratorTests/Models/Forms.swift").path
    let checked = try run(["--check", models])
    #expect(checked.status == 0)
    #expect(checked.complaints.isEmpty)
    let target = models.replacing(".swift", with: "+DirectCoding.swift")
    let expected = try String(contentsOf: URL(filePath: target), encoding: .utf8)
    #expect(try run(["--print", models]).output == expected)
  }

  @Test("The models of the tests of direct coding are what the program generates.")
  func models() throws {
    let models = root.appending(path: "Tests/LarderTests/DirectCoding/Models/Models.swift").path
    let checked = try run(["--check", models])
    #expect(checked.status == 0)
    #expect(checked.output.hasSuffix("Models+DirectCoding.swift is up to date\n"))
  }

  @Test("The feeds' models are what the program generates.")
  func feeds() throws {
    let folder = root.appending(path: "Sources/LarderFeeds")
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      .filter { $0.hasSuffix(".swift") }.map { folder.appending(path: $0).path }
    let checked = try run(["--check", "--beside"] + files)
    #expect(checked.status == 0)
    #expect(checked.complaints.isEmpty)
    #expect(checked.output.matches(of: /Loader\+DirectCoding.swift is up to date/).count == 5)
  }

  @Test("The status and the outputs are those of the command.")
  func outcomes() throws {
    let generation = try Generation(["A.swift": "struct S: Codable {}"])
    let refused = try run([generation.path("A.swift")])
    #expect(refused.status == 1)
    #expect(refused.output.isEmpty)
    #expect(refused.complaints.contains("A.swift:1:8: error: S must name Sendable"))
    try generation.write("struct S: Codable, Sendable { var x: Int }", to: "A.swift")
    let written = try run([generation.path("A.swift")])
    #expect(written.status == 0)
    #expect(written.output == "wrote \(generation.path("A+DirectCoding.swift"))\n")
    #expect(try run([generation.path("A.swift")]).output.hasSuffix("is up to date\n"))
  }

  @Test(
    "Arguments that are not known are errors, with the usage.",
    arguments: [
      ["--chekc", "A.swift"], ["A.txt"], ["A+DirectCoding.swift"],
      ["--check", "--print", "A.swift"],
    ])
  func badArguments(arguments: [String]) {
    let outcome = Command.run(arguments)
    #expect(outcome.status == 64)
    #expect(outcome.complaints.contains("USAGE: "))
    #expect(outcome.output.isEmpty)
  }

  @Test("A file that is not there is an error that names it.")
  func missingFile() {
    let outcome = Command.run(["no/such/File.swift"])
    #expect(outcome.status == 1)
    #expect(outcome.complaints.hasPrefix("no/such/File.swift: error: "))
  }
}
