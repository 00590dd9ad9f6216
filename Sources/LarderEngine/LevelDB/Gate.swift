import Dispatch
import Synchronization

/// Lets calls in until it is closed, and closes only once they are all out.
///
/// What a call uses between ``enter()`` and ``leave()`` cannot be freed under it.
struct Gate: ~Copyable {
  // Twice the number of calls inside, plus 1 once the gate is closing.
  private let state = Atomic<Int>(0)
  private let isEmpty = DispatchSemaphore(value: 0)

  /// Goes in, and returns true; or returns false when the gate is closing or closed.
  func enter() -> Bool {
    guard state.add(2, ordering: .acquiring).oldValue & 1 == 0 else {
      leave()
      return false
    }
    return true
  }

  /// Whether it lets calls in.
  var isOpen: Bool { state.load(ordering: .acquiring) & 1 == 0 }

  /// Goes out.
  ///
  /// Every ``enter()`` that returned true is followed by one.
  func leave() {
    // The last one out wakes whoever closes. One that was turned away may do so once more, later,
    // to no effect: whoever waits looks again.
    if state.subtract(2, ordering: .acquiringAndReleasing).newValue == 1 {
      isEmpty.signal()
    }
  }

  /// Lets nobody in from now on, and waits until everybody is out.
  ///
  /// By one thread at a time.
  func close() {
    _ = state.bitwiseOr(1, ordering: .acquiringAndReleasing)
    // What calls did before they left is visible to whatever comes now.
    while state.load(ordering: .acquiring) != 1 { isEmpty.wait() }
  }

  /// Lets calls in again.
  func open() {
    _ = state.bitwiseAnd(~1, ordering: .acquiringAndReleasing)
  }
}
