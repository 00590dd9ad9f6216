import ArgumentParser
import LarderInspection

struct Log: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wal",
    abstract: "List the batches of write-ahead logs, or their rows.",
    discussion: """
      Opens no database. Of a directory, it reads all logs in the order in which they were written.
      """)

  @Argument(help: "A log, or the directory of a database.", completion: .file())
  var path: String

  @OptionGroup var form: StyleOptions

  @Flag(help: "List every put and removal.")
  var entries = false

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.logs(at: path, listsEntries: entries, style: style)
    }
  }
}
