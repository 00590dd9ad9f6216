import Dispatch
import Synchronization

/// Lets calls in until it is closed, and waits for them when it closes.
///
/// Memory that a call uses between ``enter()`` and ``leave()`` is not freed under it.
struct Gate: ~Copyable {
  // Twice the number of calls inside, plus 1 once the gate is closing.
  private let state = Atomic<Int>(0)
  private let isEmpty = DispatchSemaphore(value: 0)

  /// Enters, and returns true; or returns false if the gate is closing or closed.
  func enter() -> Bool {
    guard state.add(2, ordering: .acquiring).oldValue & 1 == 0 else {
      leave()
      return false
    }
    return true
  }

  /// Whether calls may enter.
  var isOpen: Bool { state.load(ordering: .acquiring) & 1 == 0 }

  /// Leaves.
  ///
  /// Every ``enter()`` that returned true is followed by one.
  func leave() {
    // The last call to leave wakes the closing thread. A call that was turned away may signal once
    // more, later, without effect: the waiting thread checks the state again.
    if state.subtract(2, ordering: .acquiringAndReleasing).newValue == 1 {
      isEmpty.signal()
    }
  }

  /// Lets no call in from now on, and waits until all calls have left.
  ///
  /// Only one thread at a time may call it.
  func close() {
    _ = state.bitwiseOr(1, ordering: .acquiringAndReleasing)
    // The effects of all calls that have left are visible from here on.
    while state.load(ordering: .acquiring) != 1 { isEmpty.wait() }
  }

  /// Lets calls in again.
  func open() {
    _ = state.bitwiseAnd(~1, ordering: .acquiringAndReleasing)
  }
}
