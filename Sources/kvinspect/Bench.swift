import ArgumentParser
import LarderInspection

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure this machine, or reads of a store's records.",
    discussion: """
      Without --store, runs some of Larder's benchmarks in a temporary directory, against \
      LevelDB alone and JSON. With --store, reads records from a snapshot: the store may be open, \
      and is not changed. Build with -c release: the times of a debug build mean little.
      """)

  @Option(help: "The store whose records are read.", completion: .directory)
  var store: String?

  @Option(help: "The format of the report: table, json, jsonl.")
  var format: ReportFormat = .table

  @Option(parsing: .unconditional, help: "The number of rounds (7).")
  var rounds: Int?

  @Option(
    parsing: .unconditional, help: "The number of records to create; not with --store (100000).")
  var records: Int?

  @Flag(help: "Write data only: no headings, no messages.")
  var quiet = false

  func validate() throws {
    if store != nil, records != nil {
      throw ValidationError("--store and --records exclude each other")
    }
  }

  func run() throws {
    var style = Style()
    style.format = format
    style.isQuiet = quiet
    try runCommand(quiet: quiet) { output throws(InspectionError) in
      let settings = try BenchSettings(rounds: rounds, records: records)
      guard let store else {
        return try MachineBench.run(settings, style: style).write(to: &output)
      }
      return try Inspection(at: store, now: Moment.now()).bench(settings, style: style)
        .write(to: &output)
    }
  }
}
