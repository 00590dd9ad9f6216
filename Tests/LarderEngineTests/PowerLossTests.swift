import LarderEngine
import LarderTestSupport
import SimulatedDisk
import Testing

/// A power loss at any file call loses nothing durable, and leaves the state after some commit.
///
/// `LARDER_SEED` repeats a run. Each run prints its seed with its counts.
@Suite struct PowerLossTests {
  private static let named: [PowerLossScript] = [
    .syncedAfterRotation, .rotations, .syncedAfterRotation,
  ]

  @Test("A crash at any file call loses nothing durable.", arguments: [testSeed()])
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
          open: PowerLossHistory.reopen)
        search.run()
        var counts = search.counts
        counts.syncsWithOlderLog = history.syncsWithOlderLog
        return counts
      }
    #expect(counts.violations.isEmpty, "\(counts.violations.prefix(5).joined(separator: "\n"))")
    #expect(counts.states >= goal && counts.openings > 0 && counts.syncsWithOlderLog > 0)
    print("power loss: \(counts), seed \(seed)")
  }

  @Test("The same script and seed make the same journal.", arguments: [testSeed()])
  func repeatable(seed: UInt64) throws {
    for script in Self.named + (0..<200).map({ PowerLossScript(seed: seed &+ $0) }) {
      let journals = try (0..<2).map { _ in
        try PowerLossHistory(of: script, seed: seed).disk.replay().steps()
      }
      // A comparison in the expectation would print both journals, which are long.
      let isSame = journals[0] == journals[1]
      #expect(isSame, "\(script.name) \(script.operations), seed \(seed)")
    }
  }
}
