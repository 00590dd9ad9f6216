import ArgumentParser
import Foundation
import LarderInspection

struct Remove: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Remove a record from the store, which must not be open.",
    usage: "kvinspect remove <store> <key> --write [<options>]")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument

  @Flag(help: "Remove the record. Either this or --dry-run is required.")
  var write = false

  @Flag(help: "Only report which record would be removed; the store may be open.")
  var dryRun = false

  func validate() throws {
    guard write != dryRun else {
      throw ValidationError(
        "remove changes the store: use --write to confirm, or --dry-run to see the record")
    }
  }

  func run() throws {
    try shared.report { (now: Date, style: Style) throws(InspectionError) in
      try Inspection.remove(
        key.text, cache: key.cache, from: shared.store, isDryRun: dryRun, now: now,
        style: style)
    }
  }
}
