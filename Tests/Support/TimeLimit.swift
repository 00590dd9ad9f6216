import Dispatch
import Synchronization

/// A time after which something is done, unless the limit was lifted before.
///
/// Swift Testing's own limit cancels a test's task, and cannot end one that waits for a thread, a
/// lock or another process. These waits have a limit of this kind, far above what they take, and
/// where it passes the test run ends: a run that fails is better than one that hangs.
package final class TimeLimit: Sendable {
  /// The limit of a wait for a thread or another process.
  package static let seconds = 300 * proofFactor

  private let action: Mutex<(@Sendable () -> Void)?>

  /// Calls `action` after so many seconds.
  package init(seconds: Int = seconds, _ action: @escaping @Sendable () -> Void) {
    self.action = Mutex(action)
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
      self?.take()?()
    }
  }

  deinit { lift() }

  /// Lifts the limit: nothing is done when it passes.
  package func lift() { _ = take() }

  private func take() -> (@Sendable () -> Void)? {
    action.withLock { action in
      defer { action = nil }
      return action
    }
  }
}
