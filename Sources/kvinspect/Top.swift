import ArgumentParser
import LarderInspection

struct Top: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the largest records, the oldest, or the next to expire.",
    discussion: "With ttl, records that have expired are left out unless --state says otherwise.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  @Option(help: "What the first ones have most of: size, age; ttl, the next to expire.")
  var by: RecordOrder = .size

  @Option(help: "The number of records.")
  var limit = 20

  func validate() throws {
    try requirePositive(limit, "--limit")
    guard by != .key else { throw ValidationError("--by takes size, age or ttl; ls lists by key") }
  }

  func run() throws {
    var selection = records.selection
    selection.order = by
    selection.limit = limit
    if by == .ttl, records.state.isEmpty { selection.states = [.fresh, .stale] }
    try shared.report { inspection, style in
      inspection.list(selection, style: style)
    }
  }
}
