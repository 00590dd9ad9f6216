import LarderEngine
import Synchronization

/// The keys of a store that are being loaded, each with the ticket of the save that follows.
///
/// A change of a key that is made while it is loaded wins: it revokes the ticket. Changes are
/// noted in the order of commits.
final class LoadRegister: Sendable {
  private let tickets = Mutex<[[UInt8]: WriteTicket]>([:])
  private let count = Atomic<Int>(0)

  /// Whether no key is registered; writes skip the register then.
  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// Notes that a key is about to be saved or removed, also if it has no entry.
  func changed(_ recordKey: UnsafeRawBufferPointer) {
    tickets.withLock { $0[Array(recordKey)]?.revoke() }
  }

  /// Notes that the cache with an id is about to be cleared or dropped.
  func cleared(cacheID: UInt64) {}

  /// Notes that a tag is about to be invalidated.
  func invalidated(tag: UnsafeRawBufferPointer) {}
}
