import Foundation

/// Measures what the command line asks for and reports it.
@main struct LarderBench {
  static func main() {
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      let report = try run(arguments)
      if let directory = arguments.output {
        print("\nwritten to \(try report.write(to: directory).path())")
      }
      let missed = report.rows.filter { $0.isGoalMet == false }.map(\.name)
      guard arguments.checks else { return }
      print(missed.isEmpty ? "\nall goals met" : "\nnot met: \(missed.joined(separator: ", "))")
      exit(missed.isEmpty ? 0 : 1)
    } catch {
      FileHandle.standardError.write(Data("larder-bench: \(error)\n".utf8))
      exit(error is Misuse ? 64 : 2)
    }
  }

  private static func run(_ arguments: Arguments) throws -> Report {
    let scale = arguments.scale
    var report = Report(machine: Machine(), scale: scale)
    introduce(report, scale, rounds: arguments.rounds ?? scale.rounds)

    func measure(_ contests: [Contest]) throws {
      for var contest in contests where arguments.wants(contest) {
        if !scale.hasGoals { contest.goal = nil }
        let outcome = try contest.measure(rounds: arguments.rounds ?? scale.rounds)
        say(Report.line(outcome))
        report.add(outcome)
      }
    }
    let workspace = try Workspace()
    defer { discard(workspace) }
    if arguments.sweepOnly {
      try measure(try SweepSuite(scale, in: workspace).contests)
      return report
    }
    if arguments.peersOnly || arguments.largeOnly || arguments.growthOnly {
      if arguments.growthOnly { try measure(growth(arguments, in: workspace)) }
      if arguments.peersOnly { try measure(PeerSuite(scale, in: workspace).contests) }
      if arguments.largeOnly { try measure(LargeValueSuite(scale, in: workspace).contests) }
      return report
    }
    if arguments.backupsOnly {
      try BackupSuite(scale, rounds: arguments.rounds, in: workspace).run(say)
      return report
    }
    if arguments.budgetsOnly {
      try BudgetSuite(scale, in: workspace).run(say)
      return report
    }
    if arguments.weekOnly {
      try WeekSuite(scale, in: workspace).run(say)
      return report
    }
    let feeds = try FeedSuite(scale, in: workspace)
    try measure(try CodingSuite(scale).contests + feeds.contests)
    try feeds.close()
    if arguments.codingOnly { return report }
    let engines = try EngineSuite(scale, in: workspace)
    let caches = try CacheSuite(scale, in: workspace)
    let durability = try DurabilitySuite(scale, in: workspace)
    let migration = try MigrationSuite(scale, in: workspace)
    let observation = try ObservationSuite(scale, in: workspace)
    try measure(
      engines.contests + durability.contests + caches.contests + observation.contests
        + migration.contests)
    try observation.close()
    try engines.close()
    try caches.close()
    try measure(try SweepSuite(scale, in: workspace).contests)
    try measure(SmallSuite(scale, in: workspace).contests)
    try measure(growth(arguments, in: workspace))
    try measure(PeerSuite(scale, in: workspace).contests)
    try measure(LargeValueSuite(scale, in: workspace).contests)
    return report
  }

  private static func growth(_ arguments: Arguments, in workspace: Workspace) -> [Contest] {
    GrowthSuite(arguments.scale, isHuge: arguments.isHuge, in: workspace).contests
  }

  private static func introduce(_ report: Report, _ scale: Scale, rounds: Int) {
    #if DEBUG
      print("THIS IS A DEBUG BUILD: its times mean nothing.\n")
    #endif
    say(
      """
      \(report.machine.summary)
      \(scale.records) records of \(Scale.keyBytes) + \(Scale.valueBytes) bytes, \(scale.filled) \
      filled, \(scale.visited) visited, \(rounds) rounds of A B B A.
      The system keeps all files in memory. LevelDB's block cache (8 MiB) holds all that 'hot' reads
      touch; \(scale.hasGoals ? "of the rest it holds a part." : "at this scale, the rest too.")

      \(Report.heading)
      """)
  }

  /// Prints a line at once, into a pipe too: a run takes minutes.
  private static func say(_ text: String) {
    print(text)
    fflush(nil)
  }

  /// What cannot be removed stays in the temporary directory; the figures are good all the same.
  private static func discard(_ workspace: Workspace) {
    do {
      try workspace.removeAll()
    } catch {
      print("left behind: \(error)")
    }
  }
}
