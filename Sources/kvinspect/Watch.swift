import ArgumentParser
import LarderInspection

struct Metrics: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write what a running program counts in its store, in Prometheus' text format.",
    discussion: """
      The program must open the store with the option publishesStatistics. The names are those of \
      the package trait Metrics. A cron job may write them to a file for a node exporter.
      """)

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Flag(help: "Write data only, no messages.")
  var quiet = false

  func run() throws {
    try runCommand(quiet: quiet) { output throws(InspectionError) in
      try Inspection.writeMetrics(of: store, to: &output)
    }
  }
}

struct Watch: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List each change of a store that is in use as it is written.",
    discussion: """
      Follows the write-ahead log; changes nothing in the directory. Changes of one batch have the \
      same number. AGE and LEFT are those of the entry that was put. Ends with Ctrl-C.

      With --statistics, writes a line each second with what the running program has counted since \
      the line before, if it opened the store with the option publishesStatistics.
      """)

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @OptionGroup var form: StyleOptions

  @Flag(help: "Write the counts of the running program.")
  var statistics = false

  @Option(help: "Only this cache: its name, or # and its number.")
  var cache: String?

  @Flag(help: "Begin with the changes that the logs hold.")
  var fromStart = false

  @Flag(help: "List rows of notes and of the metadata, too.")
  var all = false

  @Option(parsing: .unconditional, help: "End after this number of rows.")
  var limit: Int?

  @Option(
    parsing: .unconditional,
    help: "The milliseconds between two looks at the store (200; with --statistics 1000).")
  var interval: Int?

  func validate() throws {
    try requirePositive(limit, "--limit")
    guard (10...3_600_000).contains(interval ?? 200) else {
      throw ValidationError("--interval must be 10 to 3600000 milliseconds")
    }
    if statistics, cache != nil || all || fromStart {
      throw ValidationError("--statistics excludes --cache, --all and --from-start")
    }
  }

  func run() throws {
    let pause = {
      Inspection.pause(milliseconds: interval ?? (statistics ? 1000 : 200))
      return true
    }
    let style = form.style()
    try runCommand(quiet: form.quiet) { output throws(InspectionError) in
      if statistics {
        return try Inspection.watchStatistics(
          of: store, limit: limit, style: style, to: &output, pause: pause)
      }
      var watching = Watching()
      (watching.cache, watching.limit) = (cache, limit)
      (watching.fromStart, watching.listsAll) = (fromStart, all)
      return try Inspection.watch(store, watching, style: style, to: &output, pause: pause)
    }
  }
}
