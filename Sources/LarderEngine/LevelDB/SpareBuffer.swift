import CLarderLevelDB
import Synchronization

/// The memory of a value buffer that has gone, for the next one.
///
/// There is one. A buffer that is made while it is in use has memory of its own.
package final class SpareBuffer {
  /// What has grown beyond this is freed: the next value may be small.
  private static let keptBytes = 64 << 10

  private let spare = Atomic<OpaquePointer?>(nil)

  package init() {}

  deinit { clarder_buffer_free(spare.load(ordering: .acquiring)) }

  func take() -> OpaquePointer? { spare.exchange(nil, ordering: .acquiring) }

  func leave(_ handle: OpaquePointer) {
    let isKept = clarder_buffer_slice(handle).count <= Self.keptBytes
    clarder_buffer_free(
      isKept ? spare.exchange(handle, ordering: .acquiringAndReleasing) : handle)
  }
}

// @unchecked: whoever takes the memory has it alone.
extension SpareBuffer: @unchecked Sendable {}
