import ArgumentParser
import LarderInspection

struct Sweep: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete what has expired from the store itself, which nobody may have open.",
    discussion: """
      The only command that writes, and only with --write. With --now it deletes what has expired \
      by then: what is deleted for a date that is still to come is lost.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Delete; without it, or --dry-run, nothing is done.")
  var write = false

  @Flag(help: "Only tell how much would be deleted; the store may be open.")
  var dryRun = false

  func validate() throws {
    guard write || dryRun else {
      throw ValidationError("sweep deletes from the store: say --write, or --dry-run to see first")
    }
  }

  func run() throws {
    guard !dryRun else {
      return try shared.run { inspection, output throws(InspectionError) in
        try inspection.dryRun(style: shared.style(), to: &output)
      }
    }
    try shared.run { moment, output throws(InspectionError) in
      try Inspection.sweep(shared.store, now: moment, style: shared.style(), to: &output)
    }
  }
}
