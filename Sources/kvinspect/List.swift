import ArgumentParser
import LarderInspection

struct List: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls",
    abstract: "List records: state, age, time left, size, schema version, cache and key.",
    discussion: "Payloads in segments are not read; verify finds damage to them.")

  @OptionGroup var shared: SharedOptions

  @Option(help: "Only this cache: its name, or # and its number.")
  var cache: String?

  @Option(parsing: .unconditional, help: "Only keys with this prefix.")
  var prefix: String?

  @Option(parsing: .unconditional, help: "Only this key and those after it.")
  var from: String?

  @Option(parsing: .unconditional, help: "Only keys before this one.")
  var to: String?

  @Option(
    parsing: .unconditional, help: "Only keys that match a pattern with *, ?, [a-z] and [!a-z].")
  var match: String?

  @Option(help: "Stop after this many records.")
  var limit: Int?

  @Flag(help: "From the last key to the first.")
  var reverse = false

  func validate() throws {
    guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative") }
  }

  func run() throws {
    var selection = Selection()
    selection.cache = cache
    selection.prefix = prefix
    selection.from = from
    selection.to = to
    selection.match = match
    selection.limit = limit
    selection.isReversed = reverse
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.list(selection, style: shared.style(), to: &output)
    }
  }
}
