import ArgumentParser
import Foundation
import LarderInspection

@main
struct Kvinspect: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kvinspect",
    abstract: "Inspect a Larder store.",
    discussion: """
      `kvinspect DIRECTORY` alone says what is in a store, and what to do next.

      Reads a private snapshot: the store may be open in another process, and only commands with \
      --write or --live change it. --live gives the command to the process that has the store \
      open, if it was opened with Options.control.

      Exit codes: 0 success, 1 different stores, 2 not found, 3 damage found, \
      4 no store or not available, 5 I/O error, 6 unsupported format, 64 wrong usage.
      """,
    version: Inspection.version,
    groupedSubcommands: [
      CommandGroup(
        name: "QUESTIONS ABOUT A STORE",
        subcommands: [
          Summary.self, Info.self, List.self, Get.self, Why.self, Top.self, Stats.self,
          Prefixes.self, TTL.self, Watch.self, Metrics.self, Diff.self, Digest.self, Serve.self,
        ]),
      CommandGroup(
        name: "HEALTH, DAMAGE AND COPIES",
        subcommands: [
          Doctor.self, Verify.self, Repair.self, BackUp.self, Restore.self, Export.self,
          Import.self,
        ]),
      CommandGroup(
        name: "CHANGES TO A STORE",
        subcommands: [
          SetValue.self, Remove.self, Invalidate.self, Sweep.self, Compact.self,
          ReleaseMemory.self,
        ]),
      CommandGroup(
        name: "LEVELDB'S FILES, AND THIS MACHINE",
        subcommands: [
          Find.self, Files.self, Log.self, ManifestEdits.self, TableBlocks.self, Bench.self,
        ]),
    ])

  static func main() {
    Signals.removeSnapshotsWhenEnded()
    var words = Array(CommandLine.arguments.dropFirst())
    let names = configuration.subcommands.map { $0._commandName } + ["help"]
    if let first = words.first, !first.hasPrefix("-"), !names.contains(first) {
      guard FileManager.default.fileExists(atPath: first) else {
        let meant = otherNames[first] ?? Suggestion.word(like: first, among: names)
        printMessage(
          "there is no command or store '\(first)'"
            + (meant.map { "; did you mean '\($0)'?" } ?? "; see 'kvinspect help'"))
        Inspection.removeSnapshots(thenExit: Outcome.usage.rawValue)
      }
      words.insert(Summary._commandName, at: 0)
    }
    main(words)
  }

  /// What other programs call the commands.
  private static let otherNames = [
    "rm": "remove", "del": "remove", "delete": "remove", "list": "ls", "scan": "ls", "keys": "ls",
    "show": "get", "cat": "get", "read": "get", "put": "set", "save": "set", "dump": "export",
    "load": "import", "check": "verify", "fsck": "verify", "scrub": "verify", "log": "wal",
    "expiry": "ttl", "expires": "ttl", "size": "stats", "du": "stats", "clean": "sweep",
    "gc": "sweep", "vacuum": "compact", "tail": "watch", "copy": "backup", "salvage": "repair",
  ]
}
