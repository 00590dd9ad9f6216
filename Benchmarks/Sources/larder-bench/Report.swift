import Foundation

/// What a run found, as a table for people and as JSON for programs.
struct Report: Encodable {
  let machine: Machine
  let scale: String
  private(set) var rows: [Row] = []

  /// The figures of one contest, in nanoseconds for one operation.
  struct Row: Encodable {
    let name: String
    let larder: Double
    let other: Double
    let ratio: Double
    let ratioInterval: [Double]?
    /// The ratio of Larder to itself in the same run.
    let sameAgainstSame: Double
    let goal: Double?
    let isGoalMet: Bool?
    let rounds: [Round]
  }

  init(machine: Machine, scale: Scale) {
    self.machine = machine
    self.scale = scale.name
  }

  mutating func add(_ outcome: Outcome) {
    rows.append(
      Row(
        name: outcome.name, larder: outcome.a, other: outcome.b, ratio: outcome.ratio,
        ratioInterval: outcome.interval.map { [$0.lowerBound, $0.upperBound] },
        sameAgainstSame: outcome.noise, goal: outcome.goal, isGoalMet: outcome.isGoalMet,
        rounds: outcome.rounds))
  }

  // MARK: - The table

  static let heading = """
    | workload | Larder ns | other ns | ratio | 95 % interval | A/A | goal |
    |---|---:|---:|---:|---|---:|---|
    """

  static func line(_ outcome: Outcome) -> String {
    let interval = outcome.interval.map {
      "\(decimals($0.lowerBound, 3)) to \(decimals($0.upperBound, 3))"
    }
    let goal = outcome.goal.map {
      "\(decimals($0, 3)) \(outcome.isGoalMet == true ? "met" : "NOT met")"
    }
    let cells = [
      outcome.name, decimals(outcome.a, 0), decimals(outcome.b, 0), decimals(outcome.ratio, 3),
      interval ?? "too few rounds", decimals(outcome.noise, 3), goal ?? "-",
    ]
    return "| " + cells.joined(separator: " | ") + " |"
  }

  private static func decimals(_ value: Double, _ count: Int) -> String {
    String(format: "%.\(count)f", value)
  }

  // MARK: - The file

  /// Writes the report into a file of `directory` named after the commit, and returns its place.
  func write(to directory: URL) throws -> URL {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    encoder.dateEncodingStrategy = .iso8601
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let file = directory.appending(path: "\(scale)-\(machine.commit).json")
    try encoder.encode(self).write(to: file)
    return file
  }
}

/// Where and from what the figures come.
struct Machine: Encodable {
  let processor: String
  let cores: Int
  let memoryBytes: UInt64
  let system: String
  let commit: String
  let date: Date

  init() {
    let process = ProcessInfo.processInfo
    processor = Self.processorName() ?? "unknown"
    cores = process.activeProcessorCount
    memoryBytes = process.physicalMemory
    system = process.operatingSystemVersionString
    commit = Self.output(of: ["git", "describe", "--always", "--dirty"]) ?? "unknown"
    date = Date()
  }

  var summary: String {
    "\(processor), \(cores) cores, \(memoryBytes >> 30) GiB, \(system), commit \(commit)"
  }

  private static func processorName() -> String? {
    #if os(Linux)
      let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)
      let line = text?.split(separator: "\n").first { $0.hasPrefix("model name") }
      return line?.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) }
    #else
      return output(of: ["sysctl", "-n", "machdep.cpu.brand_string"])
    #endif
  }

  private static func output(of command: [String]) -> String? {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return nil }
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    return process.terminationStatus == 0 && !text.isEmpty ? text : nil
  }
}
