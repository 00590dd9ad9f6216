import Foundation

/// What a run found, as tables for people and as JSON for programs and for plots.
struct Report: Codable {
  let machine: Machine
  let scale: String
  private(set) var rows: [Row] = []

  /// The figures of one contest, in nanoseconds for one operation.
  struct Row: Codable {
    let name: String
    /// Nil in files of before there were suites.
    let suite: String?
    let larder: Double
    let other: Double
    let ratio: Double
    let ratioInterval: [Double]?
    /// The ratio of Larder to itself in the same run.
    let sameAgainstSame: Double
    let goal: Double?
    /// How many nanoseconds more than the other are good enough, too.
    let goalMargin: Double?
    /// Nil in older files, as `suite`.
    let verdict: Verdict?
    /// What both sides and their set-up between the runs had to read from a disk, in bytes; nil as
    /// `suite`.
    let diskReads: Int?
    let rounds: [Round]
  }

  init(machine: Machine, scale: BenchScale) {
    self.machine = machine
    self.scale = scale.name
  }

  /// Adds an outcome, and returns its line of the table.
  mutating func add(_ outcome: Comparison, of suite: Suite, diskReads: Int) -> String {
    rows.append(
      Row(
        name: outcome.name, suite: suite.name, larder: outcome.a, other: outcome.b,
        ratio: outcome.ratio,
        ratioInterval: outcome.interval.map { [$0.lowerBound, $0.upperBound] },
        sameAgainstSame: outcome.noise, goal: outcome.goal, goalMargin: outcome.goalMargin,
        verdict: outcome.verdict, diskReads: diskReads, rounds: outcome.rounds))
    let goal = outcome.verdict.map {
      "\(Self.text(outcome.goal, outcome.goalMargin)) \(Self.text($0))"
    }
    return Self.line(Self.cells(outcome) + [goal ?? "-"])
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

  static func buildsLine(_ outcome: Comparison) -> String { line(cells(outcome)) }

  private static func line(_ cells: [String]) -> String {
    "| " + cells.joined(separator: " | ") + " |"
  }

  private static func cells(_ outcome: Comparison) -> [String] {
    let interval = outcome.interval.map {
      "\(decimals($0.lowerBound, 3)) to \(decimals($0.upperBound, 3))"
    }
    return [
      outcome.name, decimals(outcome.a, 0), decimals(outcome.b, 0), decimals(outcome.ratio, 3),
      interval ?? "too few rounds", decimals(outcome.noise, 3),
    ]
  }

  func introduction(_ scale: BenchScale, rounds: Int) -> String {
    """
    \(machine.summary)
    \(scale.records) records of \(Scale.keyBytes) + \(Scale.valueBytes) bytes, \(scale.filled) \
    filled, \(scale.visited) visited, \(rounds) rounds of A B B A.
    LevelDB's block cache (8 MiB) holds all that 'hot' reads touch; \
    \(scale.hasGoals ? "of the rest it holds a part." : "at this scale, the rest too.") Whether \
    the system had the files in memory stands below each table.
    """
  }

  var missed: [Row] { rows.filter { $0.verdict == .missed } }

  /// Which goals are met, and which are not.
  var goals: String {
    func list(_ title: String, _ verdict: Verdict) -> String {
      let rows = rows.filter { $0.verdict == verdict }
      let lines = rows.map { row in
        let goal = Self.text(row.goal, row.goalMargin)
        return "- \(row.name): \(decimals(row.ratio, 3)), goal \(goal)\n"
      }
      return "\(title): \(rows.count)\n\(lines.joined())\n"
    }
    guard rows.contains(where: { $0.verdict != nil }) else { return "No goals at this scale." }
    return "## Goals\n\n" + list("met", .met)
      + list("open, for the interval reaches to the goal", .open) + list("NOT met", .missed)
  }

  // MARK: - The file

  /// Writes the report into a file of `directory` named after the day and the commit, and returns
  /// its place.
  ///
  /// A run of less than everything has another name, so that it takes the place of no whole one.
  func write(to directory: URL, isWhole: Bool) throws -> URL {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    encoder.dateEncodingStrategy = .iso8601
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let suffix = (scale == BenchScale.full.name ? "" : "-\(scale)") + (isWhole ? "" : "-part")
    let file = directory.appending(path: "\(machine.day)-\(machine.commit)\(suffix).json")
    try encoder.encode(self).write(to: file)
    return file
  }

  /// Reads such a file.
  init(contentsOf file: URL) throws {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    self = try decoder.decode(Report.self, from: Data(contentsOf: file))
  }
}

func decimals(_ value: Double, _ count: Int) -> String {
  String(format: "%.\(count)f", value)
}

/// What this process has had to wait for a disk to read, in bytes: nothing, when the system had all
/// files in memory.
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
      ? "In memory: nothing was read from a disk."
      : "NOT all in memory: \(decimals(Double(bytes) / 1e3, 1)) KB were read from a disk."
  }
}
