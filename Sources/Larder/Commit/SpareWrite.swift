import Synchronization

/// The memory of a save that has ended, for the next one.
///
/// It holds the memory of one batch. A save that is made while that is in use allocates its own.
final class SpareWrite {
  /// The memory of a longer batch is freed: the next one may be small.
  private static let keptBytes = 64 << 10

  private let spare = Atomic<UnsafeMutablePointer<WriteBatch>?>(nil)

  deinit { if let batch = spare.load(ordering: .acquiring) { Self.free(batch) } }

  /// Returns an empty batch, which ``leave(_:)`` ends.
  func take() -> UnsafeMutablePointer<WriteBatch> {
    if let batch = spare.exchange(nil, ordering: .acquiring) { return batch }
    let batch = UnsafeMutablePointer<WriteBatch>.allocate(capacity: 1)
    batch.initialize(to: WriteBatch())
    return batch
  }

  func leave(_ batch: UnsafeMutablePointer<WriteBatch>) {
    guard batch.pointee.bytes.count <= Self.keptBytes else { return Self.free(batch) }
    batch.pointee.reset()
    if let other = spare.exchange(batch, ordering: .acquiringAndReleasing) { Self.free(other) }
  }

  private static func free(_ batch: UnsafeMutablePointer<WriteBatch>) {
    batch.deinitialize(count: 1)
    batch.deallocate()
  }
}

// @unchecked: only the save that has taken a batch uses it.
extension SpareWrite: @unchecked Sendable {}
