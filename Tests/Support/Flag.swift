import Foundation

/// Something that one thread tells others once.
package final class Flag {
  private let condition = NSCondition()
  private var isUp = false

  package init() {}

  /// Whether it has been told.
  package var isRaised: Bool {
    condition.withLock { isUp }
  }

  /// Tells it.
  ///
  /// Telling it again does nothing.
  package func raise() {
    condition.withLock { isUp = true }
    condition.broadcast()
  }

  /// Returns once it has been told; ends the test run if that takes too long.
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
