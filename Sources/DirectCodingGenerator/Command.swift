import Foundation

/// The command `generate-direct-coding`.
package struct Command {
  enum Mode { case write, check, print }

  package static let usage = """
    USAGE: \(Emission.command) [--check | --print] [FILE.swift ...]

    Writes the two functions of DirectCoding for each struct in FILE.swift that names Codable among
    its protocols, to FILE+DirectCoding.swift. Private structs are skipped. Without files, all
    generated files of the package are written again.

      --check   write nothing; fail if a generated file does not match its structs any more
      --print   write the functions to the standard output
      --help    show this text
    """

  /// What a run has to say.
  package struct Outcome {
    package var output = ""
    package var complaints = ""
    package var status: Int32 = 0

    mutating func complain(_ text: String, status: Int32 = 1) {
      complaints += text + "\n"
      self.status = status
    }
  }

  private var mode = Mode.write
  private var files: [String] = []
  /// Other files of the module, which may extend the structs.
  private var others: [String] = []
  private var outcome = Outcome()

  /// Runs the command with the arguments of its command line.
  package static func run(_ arguments: [String]) -> Outcome {
    var command = Command()
    if command.parse(arguments) { command.run() }
    return command.outcome
  }

  private mutating func parse(_ arguments: [String]) -> Bool {
    var modes: [Mode] = []
    var isOther = false
    for argument in arguments {
      switch argument {
      case "--check": modes.append(.check)
      case "--print": modes.append(.print)
      case "--help", "-h":
        outcome.output = Self.usage + "\n"
        return false
      // Only the plugin passes this option.
      case "--beside": isOther = true
      case _ where argument.hasPrefix("-"): return refuse("unknown option '\(argument)'")
      case _ where isOther: others.append(argument)
      case _ where !argument.hasSuffix(".swift"): return refuse("'\(argument)' is no Swift file")
      case _ where Self.isTarget(argument):
        return refuse("'\(argument)' is where the functions go; name the file of the structs")
      default: files.append(argument)
      }
    }
    if modes.count > 1 { return refuse("--check and --print exclude each other") }
    mode = modes.first ?? .write
    if files.isEmpty { findGenerated() }
    return true
  }

  private mutating func refuse(_ reason: String) -> Bool {
    outcome.complain("error: \(reason)\n\n\(Self.usage)", status: 64)
    return false
  }
}

// MARK: - Files

extension Command {
  private static func isTarget(_ path: String) -> Bool { path.hasSuffix("+DirectCoding.swift") }

  private static func target(of path: String) -> String {
    String(path.dropLast(".swift".count)) + "+DirectCoding.swift"
  }

  /// Adds the files whose generated files are among the others.
  private mutating func findGenerated() {
    for path in others where Self.isTarget(path) {
      guard let text = read(path), Emission.isGenerated(text) else { continue }
      files.append(String(path.dropLast("+DirectCoding.swift".count)) + ".swift")
    }
  }

  private mutating func read(_ path: String) -> String? {
    do {
      return try String(contentsOf: URL(filePath: path), encoding: .utf8)
    } catch {
      outcome.complain("\(path): error: \(error.localizedDescription)")
      return nil
    }
  }

  private mutating func outline(_ path: String) -> Outline? {
    guard let text = read(path) else { return nil }
    do {
      return try Outline(of: text, path: path)
    } catch {
      outcome.complain("\(error)")
      return nil
    }
  }

  private mutating func run() {
    var written: [(source: String, models: [Model])] = []
    var outlines: [String: Outline] = [:]
    for path in Set(files + others) where !Self.isTarget(path) {
      outlines[path] = outline(path)
    }
    for path in files {
      guard let file = outlines[path] else { continue }
      let others = outlines.values.filter { $0.path != path }
      let (models, refusals) = ModelFinder(file, others: others).models()
      for refusal in refusals { outcome.complain("\(refusal)") }
      written.append((path, models))
    }
    // All files or none.
    guard outcome.status == 0 else { return }
    for (source, models) in written { finish(source, models) }
  }

  private mutating func finish(_ source: String, _ models: [Model]) {
    let name = URL(filePath: source).lastPathComponent
    let target = Self.target(of: source)
    switch mode {
    case .print: outcome.output += Emission.file(of: models, from: name)
    case .check:
      guard FileManager.default.fileExists(atPath: target) else {
        return outcome.complain(
          "\(target): error: this file is missing; run '\(Emission.command) \(source)'")
      }
      guard let text = read(target) else { return }
      do {
        let differences = try Comparison.differences(
          in: text, at: target, from: models, of: source)
        for difference in differences { outcome.complain("\(difference)") }
        if differences.isEmpty {
          outcome.output += "\(target) is up to date\n"
        } else {
          outcome.complain("\(target): run '\(Emission.command) \(source)'")
        }
      } catch {
        outcome.complain("\(error)")
      }
    case .write: write(Emission.file(of: models, from: name), to: target, models.count)
    }
  }

  private mutating func write(_ text: String, to target: String, _ count: Int) {
    if FileManager.default.fileExists(atPath: target) {
      guard let old = read(target) else { return }
      if old == text { return outcome.output += "\(target) is up to date\n" }
      guard Emission.isGenerated(old) else {
        return outcome.complain("\(target): error: this file was not generated; remove it first")
      }
    }
    do {
      try text.write(to: URL(filePath: target), atomically: true, encoding: .utf8)
      outcome.output += "wrote \(target)\n"
    } catch {
      outcome.complain("\(target): error: \(error.localizedDescription)")
    }
  }
}
