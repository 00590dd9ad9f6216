import AcceptanceRows
import Larder
import LarderTestSupport
import SimulatedDisk
import Testing

/// A power loss at any file call loses nothing durable, and leaves the state after some commit.
///
/// `LARDER_SEED` repeats a run. Each run prints its seed with its counts.
@Suite(.acceptance) struct PowerLossTests {
  private static let named: [PowerLossScript] = [
    .syncedAfterRotation, .rotations, .collections, .keptPayloads, .newSegments,
    .syncedAfterRotation,
  ]

  @Test(
    "A crash at any file call loses nothing durable.", arguments: [testSeed()], [nil, 1, 1000])
  func crashAtEveryFileCall(seed: UInt64, threshold: Int?) {
    // In the proof, five million for each kind of store.
    let goal = (isProof ? 2_500_000 : 5_000) * (threshold == nil ? 2 : 1)
    let counts = PowerLossRun(seed: seed, states: goal)
      .run { number, seed in
        let script =
          Self.named.indices.contains(number)
          ? Self.named[number] : PowerLossScript(seed: seed)
        let history = try PowerLossHistory(of: script, seed: seed, threshold: threshold)
        var search = PowerLossSearch(
          of: history.disk, history.timeline, script: "\(script.name) \(script.operations)",
          open: { try PowerLossHistory.reopen($0, threshold: threshold) })
        search.run()
        var counts = search.counts
        counts.syncsWithOlderLog = history.syncsWithOlderLog
        counts.deletedSegments = history.deletedSegments
        return counts
      }
    #expect(counts.violations.isEmpty, "\(counts.violations.prefix(5).joined(separator: "\n"))")
    #expect((counts.deletedSegments > 0) == (threshold != nil))
    #expect(counts.states >= goal && counts.openings > 0 && counts.syncsWithOlderLog > 0)
    print("power loss: threshold \(threshold as Any), \(counts), seed \(seed)")
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
