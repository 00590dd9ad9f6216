import Foundation

/// The results of a run, as tables and as a JSON file.
struct Report: Codable {
  let machine: Machine
  let scale: String
  private(set) var rows: [Row] = []

  /// The results of one contest, in nanoseconds per operation.
  struct Row: Codable {
    let name: String
    /// Nil in files without suites.
    let suite: String?
    let larder: Double
    let other: Double
    let ratio: Double
    let ratioInterval: [Double]?
    /// The A/A ratio.
    let sameAgainstSame: Double
    let goal: Double?
    /// The goal is also met if Larder takes at most this many nanoseconds more.
    let goalMargin: Double?
    /// Nil without a goal, and in files without suites.
    let verdict: Verdict?
    /// Bytes read from a disk during the contest, set-up included; nil in files without suites.
    let diskReads: Int?
    let rounds: [Round]
  }

  init(machine: Machine, scale: BenchScale) {
    self.machine = machine
    self.scale = scale.name
  }

  /// Adds a row, and returns its line of the table.
  mutating func add(_ comparison: Comparison, of suite: Suite, diskReads: Int) -> String {
    rows.append(
      Row(
        name: comparison.name, suite: suite.name, larder: comparison.a, other: comparison.b,
        ratio: comparison.ratio,
        ratioInterval: comparison.interval.map { [$0.lowerBound, $0.upperBound] },
        sameAgainstSame: comparison.noise, goal: comparison.goal, goalMargin: comparison.goalMargin,
        verdict: comparison.verdict, diskReads: diskReads, rounds: comparison.rounds))
    let goal = comparison.verdict.map {
      "\(Self.text(comparison.goal, comparison.goalMargin)) \(Self.text($0))"
    }
    return Self.line(Self.cells(comparison) + [goal ?? "-"])
  }

  private static func text(_ goal: Double?, _ margin: Double?) -> String {
    let margin = margin.map { " or + \(decimals($0, 0)) ns" }
    return (goal.map { decimals($0, 3) } ?? "-") + (margin ?? "")
  }

  private static func text(_ verdict: Verdict) -> String {
    switch verdict {
    case .met: "met"
    case .open: "open"
    case .missed: "NOT met"
    }
  }

  // MARK: - The tables

  static let heading = """
    | workload | Larder ns | other ns | ratio | 95 % interval | A/A | goal |
    |---|---:|---:|---:|---|---:|---|
    """

  static let buildsHeading = """
    | workload | new ns | base ns | new/base | 95 % interval | A/A |
    |---|---:|---:|---:|---|---:|
    """

  static func buildsLine(_ comparison: Comparison) -> String { line(cells(comparison)) }

  private static func line(_ cells: [String]) -> String {
    "| " + cells.joined(separator: " | ") + " |"
  }

  private static func cells(_ comparison: Comparison) -> [String] {
    let interval = comparison.interval.map {
      "\(decimals($0.lowerBound, 3)) to \(decimals($0.upperBound, 3))"
    }
    return [
      comparison.name, decimals(comparison.a, 0), decimals(comparison.b, 0),
      decimals(comparison.ratio, 3), interval ?? "too few rounds", decimals(comparison.noise, 3),
    ]
  }

  func introduction(_ scale: BenchScale, rounds: Int) -> String {
    """
    \(machine.summary)
    \(scale.records) records of \(Scale.keyBytes) + \(Scale.valueBytes) bytes, \(scale.filled) \
    filled, \(scale.visited) visited, \(rounds) rounds of A B B A.
    LevelDB's block cache (8 MiB) holds all data \
    \(scale.hasGoals ? "of the 'hot' workloads and part of the rest." : "at this scale.") \
    The bytes read from a disk are below each table.
    """
  }

  var missed: [Row] { rows.filter { $0.verdict == .missed } }

  /// The lists of met, open and missed goals.
  var goals: String {
    func list(_ title: String, _ verdict: Verdict) -> String {
      let rows = rows.filter { $0.verdict == verdict }
      // Of a suite with a row for each call and thing, only those that do not meet the goal.
      let listed = rows.filter { row in
        verdict != .met || !Suite.all.contains { $0.name == row.suite && $0.isAlwaysChecked }
      }
      let lines = listed.map { row in
        let goal = Self.text(row.goal, row.goalMargin)
        return "- \(row.name): \(decimals(row.ratio, 3)), goal \(goal)\n"
      }
      return "\(title): \(rows.count)\n\(lines.joined())\n"
    }
    guard rows.contains(where: { $0.verdict != nil }) else { return "No goals at this scale." }
    return "## Goals\n\n" + list("met", .met)
      + list("open: the interval reaches the goal", .open) + list("NOT met", .missed)
  }

  // MARK: - The file

  /// Writes the report to a file in `directory` and returns its URL.
  ///
  /// The file is named after the day and the commit. The name of a partial run has a suffix, so
  /// that it does not replace the file of a complete run.
  func write(to directory: URL, isComplete: Bool) throws -> URL {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    encoder.dateEncodingStrategy = .iso8601
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let suffix = (scale == BenchScale.full.name ? "" : "-\(scale)") + (isComplete ? "" : "-part")
    let file = directory.appending(path: "\(machine.day)-\(machine.commit)\(suffix).json")
    try encoder.encode(self).write(to: file)
    return file
  }

  /// Reads a results file.
  init(contentsOf file: URL) throws {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    self = try decoder.decode(Report.self, from: Data(contentsOf: file))
  }
}

func decimals(_ value: Double, _ count: Int) -> String {
  String(format: "%.\(count)f", value)
}

/// The bytes that this process has read from a disk; none if all files were in the page cache.
enum DiskReads {
  static var soFar: Int {
    var usage = rusage()
    #if os(Linux)
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    #else
      getrusage(RUSAGE_SELF, &usage)
    #endif
    return usage.ru_inblock * 512
  }

  static func text(_ bytes: Int) -> String {
    bytes == 0
      ? "Nothing was read from a disk."
      : "\(decimals(Double(bytes) / 1e3, 1)) KB were READ FROM A DISK."
  }
}
