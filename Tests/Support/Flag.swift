import Foundation

/// A flag that one thread raises once, and that others wait for.
package final class Flag {
  private let condition = NSCondition()
  private var isUp = false

  package init() {}

  /// Whether the flag is raised.
  package var isRaised: Bool {
    condition.withLock { isUp }
  }

  /// Raises the flag.
  ///
  /// A second call does nothing.
  package func raise() {
    condition.withLock { isUp = true }
    condition.broadcast()
  }

  /// Returns once the flag is raised; ends the test run if that takes too long.
  package func wait() {
    let limit = Date(timeIntervalSinceNow: Double(TimeLimit.seconds))
    condition.withLock {
      while !isUp {
        guard condition.wait(until: limit) else {
          fatalError("no flag was raised for \(TimeLimit.seconds) seconds")
        }
      }
    }
  }
}

// @unchecked: `isUp` is only touched under the lock of `condition`.
extension Flag: @unchecked Sendable {}
