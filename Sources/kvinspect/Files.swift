import ArgumentParser
import LarderInspection

struct Files: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the files of a database, with their kind, level and size.",
    discussion: """
      Opens no database, so it works on any LevelDB database, however damaged. The exit code is 3 \
      if a live file is missing, or no intact MANIFEST says which files are live.
      """)

  @Argument(
    help: "The directory of a store or of another LevelDB database.", completion: .directory)
  var directory: String

  @OptionGroup var form: StyleOptions

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.files(in: directory, style: style)
    }
  }
}
