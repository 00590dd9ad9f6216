import Synchronization

/// The memory of a value buffer that has ended, for the next one.
///
/// It holds the memory of one buffer. A buffer that is made while that is in use allocates its own.
package final class SpareBuffer {
  /// Memory with a longer value than this is freed: the next value may be small.
  private static let keptBytes = 64 << 10

  private let spare = Atomic<OpaquePointer?>(nil)

  package init() {}

  deinit { take()?.free() }

  func take() -> ValueMemory? {
    spare.exchange(nil, ordering: .acquiring).map(ValueMemory.init(handle:))
  }

  func leave(_ memory: ValueMemory) {
    guard memory.bytes.count <= Self.keptBytes else { return memory.free() }
    spare.exchange(memory.handle, ordering: .acquiringAndReleasing)
      .map(ValueMemory.init(handle:))?.free()
  }
}

// @unchecked: only the buffer that has taken the memory uses it.
extension SpareBuffer: @unchecked Sendable {}
