import ArgumentParser
import LarderInspection

struct Export: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write records as JSON lines, from which import makes a store.",
    discussion: """
      An import restores dates, lifetimes, validators, tags and schema versions to the last bit. \
      Entries that an invalidated tag ended are left out. So is what cannot be read, or belongs to \
      no registered cache: a message says how many records, and the exit code is 3 or 6. Keys are \
      written in the form auto, values in Base64.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.export(records.selection, style: shared.form.style(), to: &output) {
        if !shared.form.quiet { printMessage($0) }
      }
    }
  }
}
