import ArgumentParser
import LarderInspection

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check everything: logs, tables, records, the expiry index.",
    discussion: "Names the cache and key of each problem. Exits with 3 if something is damaged.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.verify(style: shared.form.style(), to: &output)
    }
  }
}
