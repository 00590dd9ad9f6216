import LarderTestSupport
import Synchronization

/// The numbers of states that searches have checked, and the violations found.
package struct PowerLossCounts: Sendable, CustomStringConvertible {
  package var scripts = 0
  /// The number of checked crashes: pairs of a position in a journal and a crash model.
  package var states = 0
  /// The number of those crashes that interrupted an opening after an earlier crash.
  package var openingStates = 0
  /// The number of openings that were interrupted.
  package var openings = 0
  /// The number of distinct disks that were opened, per script.
  package var images = 0
  /// The number of those disks whose recovery set something aside.
  package var setAsides = 0
  /// The number of synced writes that ended while an older log was not yet in a table.
  package var syncsWithOlderLog = 0
  package var deletedSegments = 0
  package var violations: [String] = []

  package var description: String {
    "\(states) states, \(openingStates) of them in crashing \(openings) openings, "
      + "\(images) distinct images, \(setAsides) with something set aside, \(scripts) scripts, "
      + "\(syncsWithOlderLog) synced writes with a table pending, "
      + "\(deletedSegments) segments deleted, \(violations.count) violations"
  }

  fileprivate mutating func add(_ other: PowerLossCounts) {
    scripts += other.scripts
    states += other.states
    openingStates += other.openingStates
    openings += other.openings
    images += other.images
    setAsides += other.setAsides
    syncsWithOlderLog += other.syncsWithOlderLog
    deletedSegments += other.deletedSegments
    violations += other.violations
  }
}

/// Searches script after script until enough crashes are checked, or a violation is found.
package final class PowerLossRun: Sendable {
  private let seed: UInt64
  private let goal: Int
  private let state = Mutex((next: 0, counts: PowerLossCounts()))

  package init(seed: UInt64, states: Int) {
    (self.seed, goal) = (seed, states)
  }

  /// Runs on two threads.
  ///
  /// `search` gets the number of each script, from 0 on, and its seed, which depends only on the
  /// number and the seed of the run.
  package func run(
    _ search: @escaping @Sendable (_ number: Int, _ seed: UInt64) throws -> PowerLossCounts
  ) -> PowerLossCounts {
    onThreads(2) { [self] _ in
      while let number = nextNumber() {
        do {
          let counts = try search(number, seed &+ UInt64(number))
          state.withLock { $0.counts.add(counts) }
        } catch {
          state.withLock { $0.counts.violations.append("script \(number): \(error)") }
        }
      }
    }
    return state.withLock { $0.counts }
  }

  private func nextNumber() -> Int? {
    state.withLock { state in
      guard state.counts.states < goal, state.counts.violations.isEmpty else { return nil }
      defer { state.next += 1 }
      return state.next
    }
  }
}
