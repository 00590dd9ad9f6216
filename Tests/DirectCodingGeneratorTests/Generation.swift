import Foundation
import LarderTestSupport
import Testing

@testable import DirectCodingGenerator

/// A directory with Swift files, and runs of the command on them.
struct Generation: ~Copyable {
  let directory: TemporaryDirectory

  init(_ files: [String: String]) throws {
    let directory = try TemporaryDirectory()
    for (name, text) in files {
      try text.write(to: URL(filePath: directory.path(name)), atomically: true, encoding: .utf8)
    }
    self.directory = directory
  }

  func path(_ name: String) -> String { directory.path(name) }

  func write(_ text: String, to name: String) throws {
    try text.write(to: URL(filePath: path(name)), atomically: true, encoding: .utf8)
  }

  func text(_ name: String) throws -> String {
    try String(contentsOf: URL(filePath: path(name)), encoding: .utf8)
  }

  /// Runs the command on files, with the other files of the module.
  func run(
    _ options: [String] = [], _ files: [String] = ["A.swift"], beside others: [String] = []
  ) -> Command.Outcome {
    let (files, others) = (files.map { directory.path($0) }, others.map { directory.path($0) })
    return Command.run(options + files + ["--beside"] + others)
  }

  /// The complaints of a run, without the directory's path.
  func complaints(_ outcome: Command.Outcome) -> [String] {
    outcome.complaints.replacing(path(""), with: "").split(separator: "\n").map(String.init)
  }
}

/// The reasons for which a file is refused.
func refusals(of text: String, beside others: [String] = []) throws -> [String] {
  let names = others.indices.map { "B\($0).swift" }
  var files = Dictionary(uniqueKeysWithValues: zip(names, others))
  files["A.swift"] = text
  let generation = try Generation(files)
  let outcome = generation.run(["--print"], beside: names)
  #expect(outcome.output.isEmpty == (outcome.status != 0))
  #expect(outcome.status == (outcome.complaints.isEmpty ? 0 : 1))
  return generation.complaints(outcome).map { $0.replacing(": error", with: "") }
}
