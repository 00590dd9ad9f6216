import LarderTestSupport
import Synchronization

/// What searches for violations have looked at.
package struct PowerLossCounts: Sendable, CustomStringConvertible {
  package var scripts = 0
  /// How many pairs of a place in a journal and a way to crash were looked at.
  package var states = 0
  /// How many of them were crashes of an opening after a crash, and how many openings that were.
  package var openingStates = 0
  package var openings = 0
  /// How many disks were opened: those of one script that hold the same count once.
  package var images = 0
  /// On how many of them something was set aside.
  package var setAsides = 0
  /// How many synced writes ended while an older log was there, not yet in a table.
  package var syncsWithOlderLog = 0
  package var violations: [String] = []

  package var description: String {
    "\(states) states, \(openingStates) of them in crashing \(openings) openings, "
      + "\(images) distinct images, \(setAsides) with something set aside, \(scripts) scripts, "
      + "\(syncsWithOlderLog) synced writes with a table pending, \(violations.count) violations"
  }

  fileprivate mutating func add(_ other: PowerLossCounts) {
    scripts += other.scripts
    states += other.states
    openingStates += other.openingStates
    openings += other.openings
    images += other.images
    setAsides += other.setAsides
    syncsWithOlderLog += other.syncsWithOlderLog
    violations += other.violations
  }
}

/// Searches script after script until enough crashes were looked at, or a violation is found.
package final class PowerLossRun: Sendable {
  private let seed: UInt64
  private let goal: Int
  private let state = Mutex((next: 0, counts: PowerLossCounts()))

  package init(seed: UInt64, states: Int) {
    (self.seed, goal) = (seed, states)
  }

  /// Runs on two threads.
  ///
  /// `search` gets the numbers of scripts, from 0 on, and the seed of each; these are the same for
  /// the same seed of the run.
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
