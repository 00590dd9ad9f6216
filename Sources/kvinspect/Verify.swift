import ArgumentParser
import LarderInspection

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check everything: logs, tables, records, the index of what expires.",
    discussion: "Names the cache and the key of whatever is damaged, and then exits with 3.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.verify(style: shared.style(), to: &output)
    }
  }
}
