import Dispatch
import Synchronization

/// Lets the conditional changes of a cache take turns once they get in each other's way.
///
/// Without turns, eight threads that updated one key lost up to 100 tries in a row: a thread that
/// has won tries again while the others still read.
final class Turns: Sendable {
  /// The changes that have or await a turn.
  private let count = Atomic<Int>(0)
  private let turn = DispatchSemaphore(value: 1)

  /// Whether a change should wait for a turn before its first try.
  var areTaken: Bool { count.load(ordering: .relaxed) > 0 }

  /// Waits for a turn, which ``end()`` ends; false if there was none for 20 ms.
  ///
  /// The wait has a limit for a closure of an update that updates the same cache, in spite of its
  /// documentation: its own caller has the turn.
  func wait() -> Bool {
    count.add(1, ordering: .relaxed)
    if turn.wait(timeout: .monotonicNow + .milliseconds(20)) == .success { return true }
    count.subtract(1, ordering: .relaxed)
    return false
  }

  func end() {
    count.subtract(1, ordering: .relaxed)
    turn.signal()
  }
}
