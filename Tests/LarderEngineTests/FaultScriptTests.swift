import Larder
import LarderTestSupport
import SimulatedDisk
import Testing

/// No acknowledged write is lost if any one call to the disk fails, once or forever.
extension WriteFailureTests {
  private struct Failure {
    let fault: SimulatedDisk.Fault
    let calls: SimulatedDisk.Calls
    let isForever: Bool
  }

  private static let failures: [Failure] = [false, true].flatMap { isForever in
    [
      Failure(fault: .eio, calls: .mutating, isForever: isForever),
      Failure(fault: .enospc, calls: .mutating, isForever: isForever),
      Failure(fault: .shortWrite, calls: .mutating, isForever: isForever),
      Failure(fault: .failedSync, calls: .syncs, isForever: isForever),
    ]
  }

  /// In the proof each call fails in each of the eight ways, otherwise in one, which differs
  /// between the scripts.
  @Test("No acknowledged write is lost, whichever call fails.", arguments: 0..<(isProof ? 20 : 2))
  func nothingAcknowledgedIsLostWhicheverCallFails(seed: Int) throws {
    var clean = FaultScript(seed: UInt64(seed))
    clean.run(readsMustWork: true, "without a fault")
    try clean.finish("without a fault")
    #expect(clean.failures == 0)
    let counts = clean.disk.counts
    #expect(counts.mutating > 60 && counts.syncs > 10)

    for (way, failure) in Self.failures.enumerated() {
      for number in 1...(failure.calls == .syncs ? counts.syncs : counts.mutating) {
        let turn = (number + seed + way) % Self.failures.count
        if isProof || turn == 0 { try run(failure, at: number, seed) }
      }
    }
  }

  private func run(_ failure: Failure, at number: Int, _ seed: Int) throws {
    let note: Comment = "script \(seed), \(failure) at call \(number)"
    var script = FaultScript(seed: UInt64(seed))
    let disk = script.disk
    disk.fail(atCall: number, failure.fault, of: failure.calls, forever: failure.isForever)
    // A single failure may hit the reopening of the database, and then reads fail too.
    script.run(readsMustWork: failure.isForever, note)
    disk.heal()
    try script.finish(note)
  }
}
