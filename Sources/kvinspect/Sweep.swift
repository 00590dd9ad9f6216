import ArgumentParser
import LarderInspection

struct Sweep: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete expired records from the store, which must not be open.",
    discussion: """
      It changes the store only with --write. With --now it deletes the \
      records that expire by that time. If that time is in the future, fresh records are lost.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Delete the records. Either this or --dry-run is required.")
  var write = false

  @Flag(help: "Only report how many records would be deleted; the store may be open.")
  var dryRun = false

  func validate() throws {
    guard write || dryRun else {
      throw ValidationError(
        "sweep deletes records: use --write to confirm, or --dry-run to count them")
    }
  }

  func run() throws {
    guard !dryRun else {
      return try shared.report { inspection, style throws(InspectionError) in
        try inspection.dryRun(style: style)
      }
    }
    try shared.report { moment, style throws(InspectionError) in
      try Inspection.sweep(shared.store, now: moment, style: style)
    }
  }
}
