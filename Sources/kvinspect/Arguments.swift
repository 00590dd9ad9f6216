import ArgumentParser
import LarderInspection

/// The key of a command, and the cache that it is in.
struct KeyArgument: ParsableArguments {
  // An array, because a single argument does not accept negative numbers.
  @Argument(
    parsing: .allUnrecognized,
    help: """
      The key, in the form that ls writes; after -- if it begins with a dash. '#3' is the third \
      row of the list that ls or top showed last on a terminal.
      """)
  var key: [String]

  @Option(
    help: "The cache: its name, or # and its number; required if several caches have the key.")
  var cache: String?

  var text: String { words[0] }

  /// The key and its cache, with the number of a row replaced by its key.
  func place(in shared: SharedOptions) throws(InspectionError) -> (text: String, cache: String?) {
    guard let row = try LastList.row(text, of: shared.store) else { return (text, cache) }
    guard let cache, cache != row.cache else {
      return (row.text(in: shared.form.keys), row.cache)
    }
    throw InspectionError(of: text, isInCache: row.cache)
  }

  /// The place of the `--` after which no word is an option; nil if it is in front of the store,
  /// where the parser takes it away, or missing.
  private var terminator: Int? { isAllLiteral ? nil : key.firstIndex(of: "--") }

  /// Whether no word is an option, because a `--` is in front of the store.
  private var isAllLiteral: Bool {
    func count(_ words: [String]) -> Int { words.count { $0 == "--" } }
    return count(CommandLine.arguments) > count(key)
  }

  /// The keys, without the `--` in front of them.
  private var words: [String] {
    var words = key
    if let terminator { words.remove(at: terminator) }
    return words
  }

  func validate() throws {
    // Without `--`, only numbers are written with a leading dash.
    let option = key[..<(terminator ?? key.count)].first { $0.hasPrefix("-") && Int($0) == nil }
    if let option, !isAllLiteral { throw ValidationError("Unknown option '\(option)'") }
    guard words.count == 1 else {
      throw ValidationError("the command takes one key, not \(words.count)")
    }
  }
}

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

  @Option(parsing: .unconditional, help: "Only records that were saved with this tag.")
  var tag: String?

  @Option(help: "Only records of at least this size, with their keys: 500, 20KB, 1.5MB.")
  var minSize: Size?

  @Option(help: "Only records that were saved at least this long ago: 90s, 12h, 7d.")
  var minAge: Age?

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
    selection.tag = tag
    selection.leastBytes = minSize?.bytes
    selection.leastAge = minAge?.seconds
    if !state.isEmpty { selection.states = Set(state) }
    return selection
  }
}

/// A number of bytes, such as `20KB`.
struct Size: ExpressibleByArgument {
  let bytes: Int

  init?(argument: String) {
    guard let bytes = Amount.bytes(of: argument) else { return nil }
    self.bytes = bytes
  }
}

/// A span of time, such as `7d`.
struct Age: ExpressibleByArgument {
  let seconds: Double

  init?(argument: String) {
    guard let seconds = Moment.seconds(ofSpan: argument) else { return nil }
    self.seconds = seconds
  }
}

extension RecordState: ExpressibleByArgument {}
extension RecordOrder: ExpressibleByArgument {
  /// Reads the name of an order; `expires` and `expiry` are other names of `ttl`.
  public init?(argument: String) {
    switch argument {
    case "expires", "expiry": self = .ttl
    default: self.init(rawValue: argument)
    }
  }
}

/// Throws unless a number of records is positive.
func requirePositive(_ number: Int?, _ name: String) throws {
  guard number ?? 1 > 0 else { throw ValidationError("\(name) must be at least 1") }
}
