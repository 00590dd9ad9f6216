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
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.backup(to: target, style: shared.style(), to: &output)
    }
  }
}

struct Restore: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make a store of a backup, every file of which is checked first.",
    usage: "kvinspect restore <backup> <target> [<options>]")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "A missing or empty directory.", completion: .directory)
  var target: String

  func run() throws {
    try shared.run { (_: Date, output: inout StandardOutput) throws(InspectionError) in
      try Inspection.restore(shared.store, to: target, style: shared.style(), to: &output)
    }
  }
}

struct Repair: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copy the readable entries of a damaged store to a new one.",
    discussion: """
      The damaged store is only read, with its lock held: it must not be open. An entry whose \
      newest state cannot be read is left out, so that no deleted entry comes back. The exit code \
      is 3 if anything may be lost.
      """)

  @OptionGroup var shared: SharedOptions

  @Option(help: "A missing or empty directory, for the new store.", completion: .directory)
  var output: String

  func run() throws {
    try shared.run { (_: Date, report: inout StandardOutput) throws(InspectionError) in
      try Inspection.repair(shared.store, to: output, style: shared.style(), to: &report)
    }
  }
}

struct Compact: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Compact the files of the store, which must not be open.",
    discussion: """
      Removes what was overwritten or deleted from all files. It writes the whole store once, \
      except for values in segments that are mostly in use.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Compact. Required, because the files of the store are replaced.")
  var write = false

  func validate() throws {
    guard write else {
      throw ValidationError("compact replaces files of the store: use --write to confirm")
    }
  }

  func run() throws {
    try shared.run { (_: Date, output: inout StandardOutput) throws(InspectionError) in
      try Inspection.compact(shared.store, style: shared.style(), to: &output)
    }
  }
}

struct Diff: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the entries that two stores or backups do not have in common.",
    usage: "kvinspect diff <store> <other> [<options>]",
    discussion: "The exit code is 1 if there are any.")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "The directory of the other store.", completion: .directory)
  var other: String

  @Option(help: "Only this cache: its name, or # and its number.")
  var cache: String?

  func run() throws {
    var selection = Selection()
    selection.cache = cache
    try shared.run { inspection, output throws(InspectionError) in
      let other = try Inspection(at: other, now: inspection.now)
      return try inspection.differences(
        from: other, in: selection, style: shared.style(), to: &output)
    }
  }
}
