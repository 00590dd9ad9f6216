import Foundation

/// Measures what the command line asks for and reports it.
@main struct LarderBench {
  static func main() {
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      if case .plot(let file) = arguments.mode {
        guard let directory = arguments.output else {
          throw Misuse(description: "--plot needs --output DIR")
        }
        return try draw(try Report(contentsOf: file), from: file, into: directory)
      }
      try refuseDebugBuild()
      try run(arguments)
    } catch {
      FileHandle.standardError.write(Data("larder-bench: \(error)\n".utf8))
      exit(error is Misuse ? 64 : 2)
    }
  }

  /// Without the optimizer, Larder's side of a contest would take many times as long, and C++ not.
  private static func refuseDebugBuild() throws {
    #if DEBUG
      throw Misuse(description: "a debug build measures nothing: use swift run -c release")
    #endif
  }

  private static func run(_ arguments: Arguments) throws {
    let scale = arguments.scale
    switch arguments.mode {
    case .contests: try measure(arguments)
    case .backups:
      try Workspace.withTemporary { workspace in
        try BackupSuite(scale, rounds: arguments.rounds, in: workspace).run(say)
      }
    case .budgets:
      try Workspace.withTemporary { workspace in try BudgetSuite(scale, in: workspace).run(say) }
    case .week:
      try Workspace.withTemporary { workspace in try WeekSuite(scale, in: workspace).run(say) }
    case .compare(let base, let new): try compare(base: base, new: new, arguments)
    case .serve: try Server.serve(arguments)
    case .plot: break
    }
  }

  /// Measures contests, a table for each suite, and ends the process by the goals if asked to.
  private static func measure(_ arguments: Arguments) throws {
    let scale = arguments.scale
    let rounds = arguments.rounds ?? scale.rounds
    var report = Report(machine: Machine(), scale: scale)
    say(report.introduction(scale, rounds: rounds))
    for suite in arguments.wantedSuites {
      try Workspace.withTemporary { workspace in
        let (contests, close) = try suite.prepare(scale, workspace)
        let wanted = contests.filter(arguments.wants)
        if !wanted.isEmpty { say("\n## \(suite.name): \(suite.title)\n\n\(Report.heading)") }
        let before = DiskReads.soFar
        for var contest in wanted {
          if !scale.hasGoals { contest.goal = nil }
          let read = DiskReads.soFar
          let outcome = try contest.measure(rounds: rounds)
          say(report.add(outcome, of: suite, diskReads: DiskReads.soFar - read))
        }
        if !wanted.isEmpty { say("\n\(DiskReads.text(DiskReads.soFar - before))") }
        try close()
      }
    }
    say("\n\(report.goals)")
    if let directory = arguments.output {
      let file = try report.write(to: directory, isWhole: arguments.wantsAll)
      say("\nwritten to \(file.path())")
      try draw(report, from: file, into: directory)
    }
    if arguments.checks, !report.missed.isEmpty { exit(1) }
  }

  /// How often both builds are started anew when they are compared.
  ///
  /// What a process has for as long as it runs, such as its core and where its memory lies, weighs
  /// on one side alone; comparing a build with itself has shown 0.6 by that.
  private static let launches = 4

  /// Compares two builds, each in a process of its own, that run every workload in turns.
  private static func compare(base: URL, new: URL, _ arguments: Arguments) throws {
    // One that ended early is told from what it does not say any more.
    signal(SIGPIPE, SIG_IGN)
    let rounds = max(1, ((arguments.rounds ?? arguments.scale.rounds) + launches - 1) / launches)
    say("\(Machine().summary)\n\(launches) launches of \(rounds) rounds, new base base new\n")
    var comparisons: [Comparison] = []
    for _ in 0..<launches {
      let (new, base) = (
        try Served(by: new, with: arguments.forServing),
        try Served(by: base, with: arguments.forServing)
      )
      while let name = try commonWorkload(new, base) {
        let contest = Contest(name: name, operations: 1, a: new.run, b: base.run)
        let comparison = try contest.measure(rounds: rounds)
        if let place = comparisons.firstIndex(where: { $0.name == name }) {
          comparisons[place].rounds += comparison.rounds
        } else {
          comparisons.append(comparison)
        }
      }
      try new.end()
      try base.end()
    }
    say(Report.buildsHeading)
    for comparison in comparisons { say(Report.buildsLine(comparison)) }
  }

  /// Lets both go on to their next workload, which must be the same; nil when there is none.
  private static func commonWorkload(_ new: Served, _ base: Served) throws -> String? {
    let (name, other) = (try new.nextWorkload(), try base.nextWorkload())
    guard name == other else {
      throw Misuse(
        description: "the builds have other workloads: \(name ?? "none"), \(other ?? "none")")
    }
    return name
  }

  private static func draw(_ report: Report, from file: URL, into directory: URL) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let name = file.deletingPathExtension().lastPathComponent
    for (kind, image) in Plots.all(of: report) {
      let place = directory.appending(path: "\(name)-\(kind).svg")
      try Data(image.utf8).write(to: place)
      say("drawn: \(place.path())")
    }
  }

  /// Prints a line at once, into a pipe too: a run takes minutes.
  static func say(_ text: String) {
    print(text)
    fflush(nil)
  }
}
