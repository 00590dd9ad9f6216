import ArgumentParser
import LarderInspection

@main
struct Kvinspect: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kvinspect",
    abstract: "Inspect a Larder store.",
    discussion: """
      Reads a private snapshot: the store may be open in another process, and only sweep --write \
      changes its directory.

      Exit codes: 0 success, 2 not found, 3 damage found, 4 no store or not available, \
      5 I/O error, 6 unsupported format, 64 wrong usage.
      """,
    subcommands: [Info.self, List.self, Get.self, TTL.self, Verify.self, Sweep.self, Bench.self])

  static func main() {
    Signals.removeSnapshotsWhenEnded()
    main(nil)
  }
}
