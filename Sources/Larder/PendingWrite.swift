import LarderBytes
import Synchronization

/// A write that is being prepared.
struct PendingWrite: ~Copyable {
  var rows = WriteBatch()

  /// Forgets everything, and keeps the memory for the next rows.
  mutating func reset() { rows.reset() }
}

/// The memory of a save that has ended, for the next one.
///
/// It holds the memory of one write. A save that is made while that is in use allocates its own.
final class SpareWrite {
  /// The memory of a longer write is freed: the next one may be small.
  private static let keptBytes = 64 << 10

  private let spare = Atomic<UnsafeMutablePointer<PendingWrite>?>(nil)

  deinit { if let write = spare.load(ordering: .acquiring) { Self.free(write) } }

  /// Returns an empty write, which ``leave(_:)`` ends.
  func take() -> UnsafeMutablePointer<PendingWrite> {
    if let write = spare.exchange(nil, ordering: .acquiring) { return write }
    let write = UnsafeMutablePointer<PendingWrite>.allocate(capacity: 1)
    write.initialize(to: PendingWrite())
    return write
  }

  func leave(_ write: UnsafeMutablePointer<PendingWrite>) {
    guard write.pointee.rows.bytes.count <= Self.keptBytes else { return Self.free(write) }
    write.pointee.reset()
    if let other = spare.exchange(write, ordering: .acquiringAndReleasing) { Self.free(other) }
  }

  private static func free(_ write: UnsafeMutablePointer<PendingWrite>) {
    write.deinitialize(count: 1)
    write.deallocate()
  }
}

// @unchecked: only the save that has taken a write uses it.
extension SpareWrite: @unchecked Sendable {}
