import Foundation

/// Runs the measurements that the command line selects.
@main struct LarderBench {
  static func main() {
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      if case .plot(let file) = arguments.mode {
        guard let directory = arguments.output else {
          throw UsageError(description: "--plot needs --output DIR")
        }
        return try write(plots(of: file), of: file, into: directory)
      }
      try refuseDebugBuild()
      try run(arguments)
    } catch {
      FileHandle.standardError.write(Data("larder-bench: \(error)\n".utf8))
      exit(2)
    }
  }

  private static func plots(of file: URL) throws -> [(kind: String, image: String)] {
    if file.pathExtension == "txt" {
      return [("plot", try HitRatioPlot(contentsOf: file).svg())]
    }
    let report = try Report(contentsOf: file)
    try report.machine.requireCommit()
    return Plots.all(of: report)
  }

  /// A debug build would slow down Larder's side of a contest, but not C++.
  private static func refuseDebugBuild() throws {
    #if DEBUG
      throw UsageError(description: "this is a debug build; use swift run -c release")
    #endif
  }

  private static func run(_ arguments: Arguments) throws {
    let scale = arguments.scale
    switch arguments.mode {
    case .contests: try measure(arguments)
    case .background:
      try Workspace.withTemporary { workspace in
        try BackgroundSuite(scale, rounds: arguments.rounds, in: workspace).run(printLine)
      }
    case .budgets:
      try Workspace.withTemporary { workspace in
        try BudgetSuite(scale, in: workspace).run(printLine)
      }
    case .week: try simulateWeek(arguments)
    case .large: try measureLarge(arguments)
    case .hitRatio(let hitRatio): try hitRatio.run(printLine)
    case .budgetHits(let budgetHits): try budgetHits.run(printLine)
    case .compare(let base, let new): try compare(base: base, new: new, arguments)
    case .serve: try Server.serve(arguments)
    case .plot: break
    }
  }

  /// Simulates ten days; with `--output`, draws a plot.
  private static func simulateWeek(_ arguments: Arguments) throws {
    let machine = Machine()
    if arguments.output != nil { try machine.requireCommit() }
    try Workspace.withTemporary { workspace in
      let written = try WeekSuite(arguments.scale, in: workspace).run(printLine)
      try write(WeekSuite.plot(written, on: machine), named: "week.svg", arguments)
    }
  }

  /// Writes a plot that was drawn in any case, so that a quick run checks it.
  private static func write(_ image: String, named name: String, _ arguments: Arguments) throws {
    guard let directory = arguments.output else { return }
    let plot = directory.appending(path: name)
    try Data(image.utf8).write(to: plot)
    printLine("\nwrote \(plot.path())")
  }

  /// Measures large values in all stores; with `--output`, draws a plot.
  private static func measureLarge(_ arguments: Arguments) throws {
    let machine = Machine()
    if arguments.output != nil { try machine.requireCommit() }
    let mount = Machine.mount(of: FileManager.default.temporaryDirectory)
    printLine("\(machine.summary), \(mount ?? "unknown file system")\n")
    try Workspace.withTemporary { workspace in
      let suite = LargeSuite(arguments.scale, in: workspace)
      let rows = try suite.run(only: arguments.selects, printLine)
      try write(LargeSuite.plot(rows, on: machine), named: "large.svg", arguments)
    }
  }

  /// Measures contests and prints a table for each suite; `--check` exits with 1 for missed goals.
  private static func measure(_ arguments: Arguments) throws {
    let scale = arguments.scale
    let rounds = arguments.rounds ?? scale.rounds
    var report = Report(machine: Machine(), scale: scale)
    if arguments.output != nil { try report.machine.requireCommit() }
    printLine(report.introduction(scale, rounds: rounds))
    for suite in arguments.selectedSuites {
      try Workspace.withTemporary { workspace in
        let (contests, close) = try suite.prepare(scale, workspace)
        let selected = contests.filter { arguments.selects($0.name) }
        if !selected.isEmpty {
          printLine("\n## \(suite.name): \(suite.title)\n\n\(Report.heading)")
        }
        let before = DiskReads.soFar
        for var contest in selected {
          if !scale.hasGoals, !suite.isAlwaysChecked { contest.goal = nil }
          let start = DiskReads.soFar
          let comparison = try contest.measure(rounds: rounds)
          printLine(report.add(comparison, of: suite, diskReads: DiskReads.soFar - start))
        }
        if !selected.isEmpty {
          printLine("\n\(DiskReads.text(DiskReads.soFar - before))")
          if let notes = suite.notes { printLine("\n\(notes)") }
        }
        try close()
      }
    }
    printLine("\n\(report.goals)")
    // Drawn in any case, so that a quick run checks them.
    let plots = Plots.all(of: report)
    if let directory = arguments.output {
      let file = try report.write(to: directory, isComplete: arguments.selectsAll)
      printLine("\nwrote \(file.path())")
      try write(plots, of: file, into: directory)
    }
    let failing = report.missed.filter { row in
      arguments.checks || Suite.all.contains { $0.name == row.suite && $0.isAlwaysChecked }
    }
    if !failing.isEmpty { exit(1) }
  }

  /// How many times both builds are started in a comparison.
  ///
  /// Properties that a process keeps while it runs, such as its core and its memory layout, affect
  /// one side only; a build compared with itself has shown a ratio of 0.6.
  private static let launches = 4

  /// Compares two builds, each in its own process, running every workload alternately.
  private static func compare(base: URL, new: URL, _ arguments: Arguments) throws {
    // A process that exited early is detected by the end of its output.
    signal(SIGPIPE, SIG_IGN)
    let rounds = max(1, ((arguments.rounds ?? arguments.scale.rounds) + launches - 1) / launches)
    printLine("\(Machine().summary)\n\(launches) launches of \(rounds) rounds, new base base new\n")
    var comparisons: [Comparison] = []
    for _ in 0..<launches {
      let (new, base) = (
        try BuildProcess(new, arguments.servingArguments),
        try BuildProcess(base, arguments.servingArguments)
      )
      while let name = try commonWorkload(new, base) {
        let contest = Contest(name: name, operations: 1, a: new.run, b: base.run)
        let comparison = try contest.measure(rounds: rounds)
        if let index = comparisons.firstIndex(where: { $0.name == name }) {
          comparisons[index].rounds += comparison.rounds
        } else {
          comparisons.append(comparison)
        }
      }
      try new.end()
      try base.end()
    }
    printLine(Report.buildsHeading)
    for comparison in comparisons { printLine(Report.buildsLine(comparison)) }
  }

  /// Advances both builds to their next workload, which must be the same; nil at the end.
  private static func commonWorkload(
    _ new: BuildProcess, _ base: BuildProcess
  ) throws -> String? {
    let (name, other) = (try new.nextWorkload(), try base.nextWorkload())
    guard name == other else {
      throw UsageError(
        description: "the builds have different workloads: \(name ?? "-"), \(other ?? "-")")
    }
    return name
  }

  /// Writes the plots of a results file.
  private static func write(
    _ plots: [(kind: String, image: String)], of file: URL, into directory: URL
  ) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let name = file.deletingPathExtension().lastPathComponent
    for (kind, image) in plots {
      let plot = directory.appending(path: "\(name)-\(kind).svg")
      try Data(image.utf8).write(to: plot)
      printLine("wrote \(plot.path())")
    }
  }

  /// Prints a line and flushes it, because a run takes minutes.
  static func printLine(_ text: String) {
    print(text)
    fflush(nil)
  }
}
