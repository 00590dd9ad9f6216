import ArgumentParser
import LarderInspection

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check everything: logs, tables, records, notes of what expires.",
    discussion: "Names the cache and key of each problem. Exits with 3 if something is damaged.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.verify(style: style)
    }
  }
}
