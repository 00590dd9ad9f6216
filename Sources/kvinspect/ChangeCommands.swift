import ArgumentParser
import Foundation
import LarderInspection

struct Repair: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copy the readable entries of a damaged store to a new one.",
    discussion: """
      The damaged store is only read, with its lock held: it must not be open. An entry whose \
      newest state cannot be read is left out, so that no deleted entry comes back. If the \
      MANIFEST is lost, the newest rows of all tables and logs are used. A row counts as doubtful \
      if a newer state of it may be lost. The exit code is 3 if anything may be lost.
      """)

  @OptionGroup var shared: SharedOptions

  @Option(help: "A missing or empty directory, for the new store.", completion: .directory)
  var output: String

  @Flag(help: "Copy doubtful entries, too. They may have been removed or replaced.")
  var doubtful = false

  func run() throws {
    try shared.report { (_: Date, style: Style) throws(InspectionError) in
      try Inspection.repair(
        shared.store, to: output, keepsDoubtful: doubtful, style: style)
    }
  }
}

/// Where a command changes the store.
///
/// One of the flags is required.
struct PlaceOptions: ParsableArguments {
  @Flag(help: "Change the store, which must not be open. This, --live or --dry-run is required.")
  var write = false

  @Flag(help: "Let the process change the store that has it open, with Options.control.")
  var live = false

  @Flag(help: "Only report what would be changed; the store may be open.")
  var dryRun = false

  func validate() throws {
    guard [write, live, dryRun].count(where: { $0 }) == 1 else {
      throw ValidationError(
        "the command changes the store: use one of --write if it is not open, --live if it is, and "
          + "--dry-run to see what would be changed")
    }
  }

  var place: ChangePlace { dryRun ? .dryRun : live ? .process : .files }
}

struct Remove: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Remove a record from the store.",
    usage: "kvinspect remove <store> <key> --write [<options>]")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument
  @OptionGroup var place: PlaceOptions

  func run() throws {
    try shared.report { (now: Date, style: Style) throws(InspectionError) in
      let (key, cache) = try key.place(in: shared)
      return try Inspection.remove(
        key, cache: cache, from: shared.store, in: place.place, now: now, style: style)
    }
  }
}

struct Invalidate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "End all records with a tag.",
    usage: "kvinspect invalidate <store> <tag> --write [<options>]",
    discussion: "No read returns them any more. A sweep deletes them.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var place: PlaceOptions

  @Argument(help: "The tag that the records were saved with.")
  var tag: String

  func run() throws {
    try shared.report { (now: Date, style: Style) throws(InspectionError) in
      try Inspection.invalidate(tag, in: shared.store, in: place.place, now: now, style: style)
    }
  }
}

struct SetValue: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Set the value under a key of the store, which must not be open.",
    usage: "kvinspect set <store> <key> --value <json> --write [<options>]",
    discussion: """
      The value is stored in JSON, which a cache reads whatever its coder is. The record keeps its \
      own lifetime and its tags, and not its validator. A cache must be named for a new key. The \
      value must have the types and members of the old one; whether it decodes as the \
      application's type is known to the application only.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument

  @Option(help: "The value, a JSON document; - reads it from standard input.")
  var value: String

  @Option(help: "The schema version. Default: that of the record, or else of the cache.")
  var schema: Int?

  @Option(
    name: .customLong("saved-at"), parsing: .unconditional,
    help: "The date of the save, in the form of --now; now by default.")
  var savedAt: String?

  @Flag(help: "Set the value. Required, because the store is changed.")
  var write = false

  @Flag(help: "Set the value although its types or members differ from the old one's.")
  var force = false

  func validate() throws {
    guard write else {
      throw ValidationError("set changes the store: use --write to confirm")
    }
  }

  func run() throws {
    let json =
      value == "-" ? try FileHandle.standardInput.readToEnd() ?? Data() : Data(value.utf8)
    try shared.report { (now: Date, style: Style) throws(InspectionError) in
      let date = try savedAt.map { text throws(InspectionError) in
        try Moment.parse(text, from: now)
      }
      let (key, cache) = try key.place(in: shared)
      return try Inspection.set(
        NewValue(json: Array(json), schemaVersion: schema, savedAt: date, isForced: force),
        for: key, cache: cache, in: shared.store, now: now, openedWith: try shared.key,
        style: style)
    }
  }
}

struct Sweep: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete expired records from the store.",
    discussion: """
      With --now it deletes the records that have expired at that time. A time in the future \
      deletes fresh records too. A process that has the store open judges by its own clock.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var place: PlaceOptions

  func validate() throws {
    if place.live, shared.now != nil {
      throw ValidationError("with --live, the store's own clock tells the time, and not --now")
    }
  }

  func run() throws {
    guard place.place != .dryRun else {
      return try shared.report { inspection, style throws(InspectionError) in
        try inspection.dryRun(style: style)
      }
    }
    try shared.report { moment, style throws(InspectionError) in
      try Inspection.sweep(shared.store, in: place.place, now: moment, style: style)
    }
  }
}

struct Compact: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Compact the files of the store.",
    discussion: """
      Removes what was overwritten or deleted from all files. It writes the whole store once, \
      except for values in segments that are mostly in use.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Compact the files, which must not be open. This or --live is required.")
  var write = false

  @Flag(help: "Let the process compact the store that has it open, with Options.control.")
  var live = false

  func validate() throws {
    guard write != live else {
      throw ValidationError(
        "compact replaces files of the store: use --write if it is not open, or --live if it is")
    }
  }

  func run() throws {
    try shared.report { (_: Date, style: Style) throws(InspectionError) in
      try Inspection.compact(shared.store, in: live ? .process : .files, style: style)
    }
  }
}

struct ReleaseMemory: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Release decoded values in the memory of the process that has the store open.",
    usage: "kvinspect release-memory <store> --live [<options>]",
    discussion: "Nothing is deleted: the next reads take the values from disk.")

  @OptionGroup var form: StyleOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(help: "The most bytes that the values may take afterwards.")
  var to = 0

  @Flag(help: "Let the process do it that has the store open, with Options.control. Required.")
  var live = false

  func validate() throws {
    guard live else {
      throw ValidationError(
        "only a process that has the store open has values in memory: use --live")
    }
  }

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.releaseMemory(of: store, to: to, style: style)
    }
  }
}
