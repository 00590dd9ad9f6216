import ArgumentParser
import LarderInspection

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure this machine, or reading the records of a store.",
    discussion: """
      Without --store, some of Larder's benchmarks run in a temporary directory, beside LevelDB \
      alone and JSON. With it, records are read from a snapshot: the store may be open, and \
      nothing in it is changed. Build with -c release: other times mean little.
      """)

  @Option(help: "Read this store's records.", completion: .directory)
  var store: String?

  @Option(help: "How to write the answer: table, json, jsonl.")
  var format: ReportFormat = .table

  @Option(parsing: .unconditional, help: "How often each side is measured (7).")
  var rounds: Int?

  @Option(parsing: .unconditional, help: "How many records to make; not with --store (100000).")
  var records: Int?

  @Flag(help: "Write data only: no heading, no message.")
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
      guard let store else { return try MachineBench.run(settings, style: style, to: &output) }
      return try Inspection(at: store, now: Moment.now())
        .bench(settings, style: style, to: &output)
    }
  }
}
