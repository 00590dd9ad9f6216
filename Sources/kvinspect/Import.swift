import ArgumentParser
import Foundation
import LarderInspection

struct Import: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Create a store from an export, a directory of files, or a LevelDB database.",
    usage: "kvinspect import <source> <target> [<options>]",
    discussion: """
      Of files, the relative path is the key, and the date of the last change the date of the \
      save. The entries of a LevelDB database are saved now, with keys of bytes. An application \
      opens the cache with the same coder, such as `coder: .bytes` for `Data`. A name that is not \
      UTF-8, and an entry that cannot be read or is too large, refuses the import. The exit code \
      is 3 if anything was left out, such as a damaged part of a log of LevelDB.
      """)

  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case lines, files, leveldb
  }

  @Argument(help: "A file that export has written, - for standard input, or a directory.")
  var source: String

  @Argument(
    help: "A missing or empty directory; not needed with --dry-run.", completion: .directory)
  var target: String?

  @Option(help: "What the source is: lines of an export, files, leveldb.")
  var kind: Kind = .lines

  @Option(help: "The cache for files and for entries of LevelDB.")
  var cache: String?

  @Option(help: "Its lifetime in days, or unlimited.")
  var lifetime = "7"

  @Option(help: "The coder of the values in it: bytes, json, propertyList, binary.")
  var coder = "bytes"

  @Option(help: "The format of the report: table, json, jsonl.")
  var format: ReportFormat = .table

  @Flag(help: "Leave out and count files and entries that cannot be imported.")
  var skipUnreadable = false

  @Flag(help: "Check the source and write nothing.")
  var dryRun = false

  @Flag(help: "Write the number of records only, and no messages.")
  var quiet = false

  func validate() throws {
    guard dryRun || target != nil else { throw ValidationError("a target is required") }
    guard !dryRun || target == nil else {
      throw ValidationError("--dry-run writes nothing: leave the target out")
    }
    guard (kind == .lines) == (cache == nil) else {
      throw ValidationError(
        kind == .lines ? "an export names its caches: leave --cache out" : "--cache is required")
    }
    guard kind != .lines || !skipUnreadable else {
      throw ValidationError("--skip-unreadable needs --kind files or leveldb")
    }
  }

  func run() throws {
    var style = Style()
    style.format = format
    style.isQuiet = quiet
    try runCommand(quiet: quiet) { [style] output throws(InspectionError) in
      let cache = try NewCache(name: cache ?? "", lifetime: lifetime, coder: coder)
      let from: ImportSource =
        switch kind {
        case .lines: .lines(source)
        case .files: .files(source, cache: cache)
        case .leveldb: .levelDB(source, cache: cache)
        }
      let leftOut = LeftOut(skippingUnreadable: skipUnreadable) { message in
        if !quiet { printMessage(message) }
      }
      return try Inspection.importing(
        from, to: target, leavingOut: leftOut, now: Moment.now(), progress: output.progress,
        style: style
      ).write(to: &output)
    }
  }
}
