import LarderEngine
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// Whenever the power goes, nothing durable is lost, and what is there is what once was.
@Suite struct PowerLossTests {
  @Test("crash at every file call", arguments: [.random(in: 0 ... .max)] as [UInt64])
  func crashAtEveryFileCall(seed: UInt64) {
    let tally = PowerLossTally(
      scripts: [.syncedAfterRotation, .rotations, .syncedAfterRotation], seed: seed,
      states: 50_000 * (proofFactor > 1 ? 100 : 1))
    onThreads(2) { _ in
      while let script = tally.nextScript() {
        do {
          var search = PowerLossSearch(of: try PowerLossHistory(of: script), script: script)
          try search.run()
          tally.add(search)
        } catch {
          tally.add("\(script.name) \(script.operations): \(error)")
        }
      }
    }
    let total = tally.total
    #expect(total.violations.isEmpty, "\(total.violations.prefix(5).joined(separator: "\n"))")
    #expect(total.states >= 50_000)
    print(
      "power loss: \(total.states) states, \(total.images) distinct images, "
        + "\(total.scripts) scripts, "
        + "\(total.syncsWithOlderLog) synced writes with a table pending, "
        + "\(total.violations.count) violations, seed \(seed)")
  }
}

/// What all threads have found, and which script is next.
private final class PowerLossTally: Sendable {
  struct Total {
    var scripts = 0
    var states = 0
    var images = 0
    var syncsWithOlderLog = 0
    var violations: [String] = []
  }

  private let named: [PowerLossScript]
  private let seed: UInt64
  private let goal: Int
  private let state = Mutex(Total())

  init(scripts: [PowerLossScript], seed: UInt64, states: Int) {
    (named, self.seed, goal) = (scripts, seed, states)
  }

  var total: Total { state.withLock { $0 } }

  /// The named scripts, then random ones until there are enough states or a violation.
  func nextScript() -> PowerLossScript? {
    let number: Int? = state.withLock { total in
      guard total.scripts < named.count || total.states < goal, total.violations.isEmpty else {
        return nil
      }
      defer { total.scripts += 1 }
      return total.scripts
    }
    guard let number else { return nil }
    return number < named.count
      ? named[number] : PowerLossScript(seed: seed &+ UInt64(number))
  }

  func add(_ violation: String) { state.withLock { $0.violations.append(violation) } }

  func add(_ search: PowerLossSearch) {
    state.withLock { total in
      total.states += search.states
      total.images += search.images
      total.syncsWithOlderLog += search.history.syncsWithOlderLog
      total.violations += search.violations
    }
  }
}
