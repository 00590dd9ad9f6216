import ArgumentParser
import LarderInspection

struct Stats: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the number and the sizes of the records of each cache, by schema version.",
    discussion: """
      KEYS and VALUES are the sizes of stored keys and records, before LevelDB compresses its \
      blocks. 50 %, 99 % and LARGEST are sizes of records.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.statistics(of: records.selection, style: style)
    }
  }
}
