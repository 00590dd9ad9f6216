import ArgumentParser
import LarderInspection

struct Summary: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say what is in the store, and what to do next.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.report { now, progress, style throws(InspectionError) in
      try Inspection.summary(shared.store, now: now, progress: progress, style: style)
    }
  }
}

struct Info: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the store's owner, files and caches.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.info(style: style)
    }
  }
}

struct List: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls",
    abstract: "List records: state, age, time left, size, schema version, cache and key.",
    discussion: "Payloads in segments are not read; verify finds damage to them.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  @Option(
    help:
      "The order: key; size, largest first; age, oldest; ttl or expires, the next to expire."
  )
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
    try shared.list(selection)
  }
}

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a record: its fields and its payload.",
    usage: "kvinspect get <store> <key> [<options>]",
    discussion: "Expired records are shown, and marked as expired.")

  @OptionGroup var shared: SharedOptions

  @OptionGroup var key: KeyArgument

  @Option(help: "How to write the payload: auto, json, hex, size, none.")
  var values: ValueForm = .auto

  @Flag(help: "Write the payload's bytes and nothing else.")
  var raw = false

  func validate() throws {
    guard !(raw && shared.form.redact) else {
      throw ValidationError("--raw and --redact exclude each other")
    }
  }

  func run() throws {
    guard raw else {
      return try shared.report(values: values) { inspection, style throws(InspectionError) in
        let (key, cache) = try key.place(in: shared)
        return try inspection.get(key, cache: cache, style: style)
      }
    }
    try shared.run { inspection, output throws(InspectionError) in
      let (key, cache) = try key.place(in: shared)
      let payload = try inspection.payload(of: key, cache: cache, keys: shared.form.keys)
      if payload.isExpired, !shared.form.quiet { printMessage("\(key) is expired") }
      output.write(payload.bytes)
      return .fine
    }
  }
}

struct Why: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say what a read of a key would return, and why.",
    usage: "kvinspect why <store> <key> [<options>]")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      let (key, cache) = try key.place(in: shared)
      return try inspection.why(key, cache: cache, style: style)
    }
  }
}

struct Find: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List every put and removal of a key in the files of a database, newest first.",
    discussion: """
      A read finds the current one. Older ones stay until a compaction reaches them. SEQUENCE is \
      LevelDB's, and BYTE is the start of the batch or block in the file. In a database that is no \
      store, keys are bytes: text, or 0x and hex. The exit code is 3 if a part of the files cannot \
      be read.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument

  @Flag(help: "The key is one of the database, in hex; then a damaged store can be searched, too.")
  var databaseKey = false

  func run() throws {
    try shared.form.report { style throws(InspectionError) in
      let (key, cache) =
        try databaseKey ? (key.text, key.cache) : key.place(in: shared)
      return try Inspection.find(
        key, cache: cache, isDatabaseKey: databaseKey, in: shared.store, style: style)
    }
  }
}

struct Top: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the largest records, the oldest, or the next to expire.",
    discussion: "With ttl, records that have expired are left out unless --state says otherwise.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  @Option(help: "What the first ones have most of: size, age; ttl or expires, the next to expire.")
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
    try shared.list(selection)
  }
}

struct TTL: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ttl",
    abstract: "Show when records expire, and what a sweep would delete.",
    discussion: """
      BYTES is the size of the records with their keys, before compression. The backlog is the \
      expired records that a sweep would delete now.
      """)

  @OptionGroup var shared: SharedOptions

  @Option(help: "Only records of this cache: its name, or # and its number.")
  var cache: String?

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.timeToLive(ofCache: cache, style: style)
    }
  }
}

struct Prefixes: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show how many records and bytes have keys that begin alike.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  @Option(
    parsing: .unconditionalSingleValue,
    help: "A text after which a part of a key ends; repeatable. Without it, / and :.")
  var delimiter: [String] = []

  @Option(help: "The most parts of a prefix.")
  var depth = 2

  @Option(help: "The most prefixes below another one; the largest are shown.")
  var limit = 20

  func validate() throws {
    try requirePositive(depth, "--depth")
    try requirePositive(limit, "--limit")
    guard !delimiter.contains("") else {
      throw ValidationError("--delimiter must not be empty")
    }
  }

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.prefixes(
        of: records.selection, delimiters: delimiter.isEmpty ? ["/", ":"] : delimiter,
        depth: depth, limit: limit, style: style)
    }
  }
}

struct Stats: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the number and the sizes of the records of each cache, by schema version.",
    discussion: """
      KEYS and VALUES are the sizes of stored keys and records, before LevelDB compresses its \
      blocks. 50 %, 99 % and LARGEST are sizes of records.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.statistics(of: records.selection, style: style)
    }
  }
}
