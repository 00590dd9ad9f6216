import Foundation

/// The command `generate-direct-coding`.
package struct Command {
  enum Mode { case write, check, print }

  package static let usage = """
    USAGE: \(Emission.command) [--check | --print] [--in-file] [FILE.swift ...]

    Writes the functions of DirectCoding for each struct in FILE.swift that names Codable among its
    protocols, and those of DirectEnum for each such enum without raw values, to
    FILE+DirectCoding.swift. Private types are skipped. A type that is not understood is left out,
    with a warning. Without files, all generated functions of the package are written again.

      --check    write nothing; fail if generated functions do not match their types any more
      --print    write the functions to the standard output
      --in-file  write the functions to the end of FILE.swift, where they can set private properties
      --help     show this text

    EXIT STATUS: 0 if the functions are written, or match, also if types were left out; 1 if not;
    64 if the arguments are wrong.
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
  /// Whether the functions go into the files of the types, also if they are not there yet.
  private var isInFile = false
  private var files: [String] = []
  /// Other files of the module, which may extend the types.
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
      case "--in-file": isInFile = true
      case "--help", "-h":
        outcome.output = Self.usage + "\n"
        return false
      // Only the plugin passes this option.
      case "--beside": isOther = true
      case _ where argument.hasPrefix("-"): return refuse("unknown option '\(argument)'")
      case _ where isOther: others.append(argument)
      case _ where !argument.hasSuffix(".swift"): return refuse("'\(argument)' is no Swift file")
      case _ where Self.isTarget(argument):
        return refuse("'\(argument)' is where the functions go; name the file of the types")
      default: files.append(argument)
      }
    }
    if modes.count > 1 { return refuse("--check and --print exclude each other") }
    if isInFile, files.isEmpty { return refuse("--in-file needs the name of a file") }
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

  fileprivate static func target(of path: String) -> String {
    String(path.dropLast(".swift".count)) + "+DirectCoding.swift"
  }

  /// Adds those of the other files that have generated functions, beside or within them.
  private mutating func findGenerated() {
    for path in others {
      guard let text = read(path) else { continue }
      if !Self.isTarget(path) {
        if Section.isIn(text) { files.append(path) }
      } else if Emission.isGenerated(text) {
        files.append(String(path.dropLast("+DirectCoding.swift".count)) + ".swift")
      }
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

  /// Runs a step, and complains of its refusal.
  private mutating func attempt<T>(_ step: () throws(Refusal) -> T) -> T? {
    do {
      return try step()
    } catch {
      outcome.complain("\(error)")
      return nil
    }
  }

  private mutating func run() {
    var sections: [String: Section] = [:]
    var outlines: [String: Outline] = [:]
    for path in Set(files + others) where !Self.isTarget(path) {
      guard let text = read(path) else { continue }
      let section = attempt { () throws(Refusal) in try Section(of: text, path: path) }
      guard let section else { continue }
      sections[path] = section
      outlines[path] = attempt { () throws(Refusal) in
        try Outline(of: section.source, path: path)
      }
    }
    var sources: [Source] = []
    for path in files {
      guard let section = sections[path], let outline = outlines[path] else { continue }
      let isInFile = isInFile || section.functions != nil
      let others = outlines.values.filter { $0.path != path }
      let found = attempt { () throws(Refusal) in
        if isInFile { try outline.checkImport() }
        return try ModelFinder(outline, others: others, isInFile: isInFile).models()
      }
      guard let (models, leftOut) = found else { continue }
      for (name, reason) in leftOut.map({ ($0.name, $0.reason) }) {
        if models.isEmpty {
          outcome.complain("\(reason)")
        } else {
          outcome.complaints += reason.warning(leavingOut: name) + "\n"
        }
      }
      sources.append(
        Source(
          path: path, section: section, isInFile: isInFile, models: models, leftOut: leftOut))
    }
    // All files or none.
    guard outcome.status == 0 else { return }
    for source in sources { finish(source) }
  }
}

// MARK: - One file

/// A file of types, and where their functions go.
private struct Source {
  var path: String
  var section: Section
  var isInFile: Bool
  var models: [Model]
  var leftOut: [ModelFinder.LeftOut]

  var name: String { URL(filePath: path).lastPathComponent }
  /// The command that writes the functions.
  var command: String { "\(Emission.command) \(isInFile ? "--in-file " : "")\(path)" }
  var target: String { isInFile ? path : Command.target(of: path) }
  /// The functions as they should be.
  var functions: String {
    isInFile ? Emission.section(of: models) : Emission.file(of: models, from: name)
  }
}

extension Command {
  private mutating func finish(_ source: Source) {
    let beside = Self.target(of: source.path)
    let isBeside = FileManager.default.fileExists(atPath: beside)
    switch mode {
    case .print: outcome.output += source.functions + (source.isInFile ? "\n" : "")
    case .check, .write:
      let text = isBeside ? read(beside) : nil
      if isBeside, text == nil { return }
      if source.isInFile, let text, Emission.isGenerated(text) {
        return outcome.complain(
          "\(beside): error: remove this file; its functions belong into \(source.path)")
      }
      if mode == .check {
        check(source, source.isInFile ? source.section.functions : text)
      } else if source.isInFile {
        let text = source.section.replaced(by: source.functions)
        write(text, to: source.path, over: source.section.text)
      } else if let text, !Emission.isGenerated(text) {
        outcome.complain("\(beside): error: this file was not generated; remove it first")
      } else {
        write(source.functions, to: beside, over: text)
      }
    }
  }

  private mutating func check(_ source: Source, _ text: String?) {
    guard let text else {
      let missing = source.isInFile ? "its functions are missing" : "this file is missing"
      return outcome.complain("\(source.target): error: \(missing); run '\(source.command)'")
    }
    let differences = attempt { () throws(Refusal) in
      try Comparison(
        text, at: source.target, with: source.models, leavingOut: source.leftOut, of: source.path
      ).differences(from: source.functions)
    }
    guard let differences else { return }
    for difference in differences { outcome.complain("\(difference)") }
    if differences.isEmpty {
      outcome.output += "\(source.target) is up to date\n"
    } else {
      outcome.complain("\(source.target): run '\(source.command)'")
    }
  }

  private mutating func write(_ text: String, to target: String, over old: String?) {
    if old == text { return outcome.output += "\(target) is up to date\n" }
    do {
      try text.write(to: URL(filePath: target), atomically: true, encoding: .utf8)
      outcome.output += "wrote \(target)\n"
    } catch {
      outcome.complain("\(target): error: \(error.localizedDescription)")
    }
  }
}
