import ArgumentParser
import LarderInspection

@main
struct Kvinspect: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kvinspect",
    abstract: "Inspect a Larder store.",
    discussion: """
      Reads a private snapshot: the store may be open in another process, and only commands with \
      --write change its directory.

      Exit codes: 0 success, 1 different stores, 2 not found, 3 damage found, \
      4 no store or not available, 5 I/O error, 6 unsupported format, 64 wrong usage.
      """,
    version: Inspection.version,
    subcommands: [
      Info.self, List.self, Get.self, Why.self, Top.self, Stats.self, Prefixes.self, TTL.self,
      Verify.self, Find.self, Files.self, Log.self, ManifestEdits.self, TableBlocks.self, Diff.self,
      Digest.self, Watch.self, Doctor.self, BackUp.self, Restore.self, Export.self, Import.self,
      Repair.self, Remove.self, SetValue.self, Sweep.self, Compact.self, Bench.self,
    ])

  static func main() {
    Signals.removeSnapshotsWhenEnded()
    main(nil)
  }
}
