import ArgumentParser
import Foundation
import LarderInspection

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

  @Option(help: "The schema version of the value; that of the record, or of the cache, by default.")
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
      return try Inspection.set(
        NewValue(json: Array(json), schemaVersion: schema, savedAt: date, isForced: force),
        for: key.text, cache: key.cache, in: shared.store, now: now, style: style)
    }
  }
}
