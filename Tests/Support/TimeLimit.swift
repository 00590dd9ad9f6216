import Dispatch
import Synchronization

/// Calls an action after some time, unless the limit is lifted before.
///
/// Swift Testing's own limit cancels a test's task, but cannot end one that waits for a thread, a
/// lock or another process. These waits have a limit of this kind, far above their usual time,
/// which ends the test run: a run that fails is better than one that hangs.
package final class TimeLimit: Sendable {
  /// The limit for a wait for a thread or another process.
  package static let seconds = 300 * proofFactor

  private let action: Mutex<(@Sendable () -> Void)?>

  /// Calls `action` after `seconds` seconds.
  package init(seconds: Int = seconds, _ action: @escaping @Sendable () -> Void) {
    self.action = Mutex(action)
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
      self?.take()?()
    }
  }

  deinit { lift() }

  /// Lifts the limit, so that the action is not called.
  package func lift() { _ = take() }

  private func take() -> (@Sendable () -> Void)? {
    action.withLock { action in
      defer { action = nil }
      return action
    }
  }
}
