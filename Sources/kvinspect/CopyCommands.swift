import ArgumentParser
import Foundation
import LarderInspection

struct BackUp: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Make a backup of the store, which may be open in another process.",
    usage: "kvinspect backup <store> <target> [<options>]",
    discussion: "restore makes a store of it, and every other command reads it.")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "A missing or empty directory.", completion: .directory)
  var target: String

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.backup(to: target, style: style)
    }
  }
}

struct Restore: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Restore a backup to a new store, after checking each of its files.",
    usage: "kvinspect restore <backup> <target> [<options>]")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "A missing or empty directory.", completion: .directory)
  var target: String

  func run() throws {
    try shared.report { (_: Date, style: Style) throws(InspectionError) in
      try Inspection.restore(shared.store, to: target, style: style)
    }
  }
}

struct Export: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write records as JSON lines, from which import makes a store.",
    discussion: """
      An import restores dates, lifetimes, validators, tags and schema versions to the last bit. \
      Entries that an invalidated tag ended are left out. So is what cannot be read, or belongs to \
      no registered cache: a message says how many records, and the exit code is 3 or 6. Keys are \
      written in the form auto, values in Base64.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  #if Encryption
    @Flag(help: "Write the values of a sealed store, too; it also needs --key-file.")
    var plaintext = false
  #else
    var plaintext: Bool { false }
  #endif

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.export(
        records.selection, isPlaintext: plaintext, style: shared.form.style(), to: &output
      ) {
        if !shared.form.quiet { printMessage($0) }
      }
    }
  }
}

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
