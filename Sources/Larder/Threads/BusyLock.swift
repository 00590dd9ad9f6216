import Foundation

/// A lock for which many threads wait at the same time, and the value that it protects.
///
/// On Linux, a `Mutex` that is released while threads wait belongs to the first of them at once,
/// even if that thread still sleeps. Until it has been woken, no other thread can take the lock. A
/// `BusyLock` that is released can be taken by any thread.
final class BusyLock<Value> {
  private let lock = NSLock()
  private var value: Value

  init(_ value: sending Value) { self.value = value }

  func withLock<R, E: Error>(_ body: (inout Value) throws(E) -> R) throws(E) -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

// @unchecked: `value` is only used under the lock.
extension BusyLock: @unchecked Sendable where Value: Sendable {}
