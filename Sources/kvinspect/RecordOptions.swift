import ArgumentParser
import LarderInspection

/// The options of commands that select records.
struct RecordOptions: ParsableArguments {
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

  @Option(
    parsing: .singleValue,
    help: "Only records in this state: fresh, stale, expired, damaged, unsupported; repeatable.")
  var state: [RecordState] = []

  var selection: Selection {
    var selection = Selection()
    selection.cache = cache
    selection.prefix = prefix
    selection.from = from
    selection.to = to
    selection.match = match
    if !state.isEmpty { selection.states = Set(state) }
    return selection
  }
}

extension RecordState: ExpressibleByArgument {}
extension RecordOrder: ExpressibleByArgument {}

/// Throws unless a number of records is positive.
func requirePositive(_ number: Int?, _ name: String) throws {
  guard number ?? 1 > 0 else { throw ValidationError("\(name) must be at least 1") }
}
