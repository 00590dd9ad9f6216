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

  /// Returns once it has been told.
  package func wait() {
    condition.withLock {
      while !isUp { condition.wait() }
    }
  }
}

// @unchecked: `isUp` is only touched under the lock of `condition`.
extension Flag: @unchecked Sendable {}
