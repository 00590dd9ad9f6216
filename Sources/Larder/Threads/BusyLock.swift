import Foundation

/// A lock for which many threads wait at the same time, and the value that it protects.
///
/// On Linux, a `Mutex` that threads wait for is handed to the first of them, which has to be woken.
/// Until it runs nobody has the use of the lock, and the others spin. This lock can be taken by any
/// thread as soon as it is released.
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
