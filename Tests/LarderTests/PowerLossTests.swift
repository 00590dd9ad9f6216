import LarderTestSupport
import SimulatedDisk
import Testing

/// After a power loss at any moment, caches hold a state that they once held, with its index.
///
/// `LARDER_SEED` repeats a run; the seed is printed with the counts.
@Suite struct PowerLossTests {
  @Test(
    "A power loss at any file call leaves a state that the caches once held.",
    arguments: [testSeed()], [nil, 1])
  func crashAtEveryFileCall(seed: UInt64, threshold: Int?) {
    let goal = isProof ? 1_000_000 : 2_500
    let counts = PowerLossRun(seed: seed, states: goal).run { number, seed in
      let script = number == 0 ? .everything : PowerLossScript(seed: seed)
      let history = try PowerLossHistory(of: script, seed: seed, threshold: threshold)
      if number == 0 {
        #expect(history.swept > 0 && history.sweptAtClosings > 0 && history.evicted > 0)
      }
      var search = PowerLossSearch(
        of: history.disk, history.timeline, script: "\(script.name) \(script.operations)",
        open: PowerLossHistory.look)
      search.run()
      var counts = search.counts
      counts.syncsWithOlderLog = history.syncsWithOlderLog
      counts.deletedSegments = history.deletedSegments
      return counts
    }
    #expect(counts.violations.isEmpty, "\(counts.violations.prefix(5).joined(separator: "\n"))")
    #expect(counts.states >= goal && counts.openings > 0)
    #expect((counts.deletedSegments > 0) == (threshold != nil))
    // Few scripts may have none, and rows of pointers alone do not fill a log.
    #expect(counts.syncsWithOlderLog > 0 || threshold != nil || !isProof)
    print("power loss of caches: threshold \(threshold as Any), \(counts), seed \(seed)")
  }

  @Test("A script produces the same journal each time.", arguments: [testSeed()])
  func sameJournal(seed: UInt64) throws {
    for script in [.everything] + (0..<50).map({ PowerLossScript(seed: seed &+ $0) }) {
      let journals = try (0..<2).map { _ in
        try PowerLossHistory(of: script, seed: seed).disk.replay().steps()
      }
      // Both journals are long, so they are not in the message.
      let isSame = journals[0] == journals[1]
      #expect(isSame, "\(script.name) \(script.operations), seed \(seed)")
    }
  }
}
