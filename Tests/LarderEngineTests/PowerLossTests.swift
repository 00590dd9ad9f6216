import LarderEngine
import LarderTestSupport
import SimulatedDisk
import Testing

/// Whenever the power goes, nothing durable is lost, and what is there is what once was.
///
/// `LARDER_SEED` repeats a run: it is printed with what was looked at.
@Suite struct PowerLossTests {
  private static let named: [PowerLossScript] = [
    .syncedAfterRotation, .rotations, .syncedAfterRotation,
  ]

  @Test("crash at every file call", arguments: [testSeed()])
  func crashAtEveryFileCall(seed: UInt64) {
    let goal = proofFactor > 1 ? 5_000_000 : 60_000
    let counts = PowerLossRun(seed: seed, states: goal)
      .run { number, seed in
        let script =
          Self.named.indices.contains(number)
          ? Self.named[number] : PowerLossScript(seed: seed)
        let history = try PowerLossHistory(of: script, seed: seed)
        var search = PowerLossSearch(
          of: history.disk, history.timeline, script: "\(script.name) \(script.operations)",
          open: PowerLossHistory.look)
        search.run()
        var counts = search.counts
        counts.syncsWithOlderLog = history.syncsWithOlderLog
        return counts
      }
    #expect(counts.violations.isEmpty, "\(counts.violations.prefix(5).joined(separator: "\n"))")
    #expect(counts.states >= goal && counts.openings > 0 && counts.syncsWithOlderLog > 0)
    print("power loss: \(counts), seed \(seed)")
  }

  @Test(arguments: [testSeed()])
  func aScriptMakesTheSameJournalEachTime(seed: UInt64) throws {
    for script in Self.named + (0..<200).map({ PowerLossScript(seed: seed &+ $0) }) {
      let journals = try (0..<2).map { _ in
        try PowerLossHistory(of: script, seed: seed).disk.replay().steps()
      }
      // Both journals are long, so they are not in the message.
      let isSame = journals[0] == journals[1]
      #expect(isSame, "\(script.name) \(script.operations), seed \(seed)")
    }
  }
}
