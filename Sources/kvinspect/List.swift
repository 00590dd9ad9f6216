import ArgumentParser
import LarderInspection

struct List: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls",
    abstract: "List records: state, age, time left, size, schema version, cache and key.",
    discussion: "Payloads in segments are not read; verify finds damage to them.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  @Option(
    help: "The order: key; size, the largest first; age, the oldest; ttl, the next to expire.")
  var sort: RecordOrder = .key

  @Option(help: "Stop after this many records.")
  var limit: Int?

  @Flag(help: "In the opposite order.")
  var reverse = false

  func validate() throws {
    guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative") }
  }

  func run() throws {
    var selection = records.selection
    selection.order = sort
    selection.limit = limit
    selection.isReversed = reverse
    try shared.report { inspection, style in
      inspection.list(selection, style: style)
    }
  }
}
