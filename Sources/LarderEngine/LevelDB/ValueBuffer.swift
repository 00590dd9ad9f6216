import CLarderLevelDB

/// Memory that values are read into, again and again.
///
/// It keeps its memory from one read to the next, so a loop of reads allocates once.
package struct ValueBuffer: ~Copyable {
  /// What the engine of this folder reads into.
  ///
  /// It belongs to this buffer alone.
  let handle: OpaquePointer

  package init() {
    handle = clarder_buffer_create()
  }

  deinit {
    clarder_buffer_free(handle)
  }

  /// How many bytes the buffer holds.
  package var count: Int { clarder_buffer_slice(handle).count }

  /// Lends the bytes for as long as the call.
  package func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(UnsafeRawBufferPointer(clarder_buffer_slice(handle)).bytes)
  }

  /// Replaces what the buffer holds.
  mutating func assign(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { clarder_buffer_assign(handle, clarder_slice($0)) }
  }

  /// Empties the buffer.
  mutating func clear() {
    clarder_buffer_assign(handle, clarder_slice(bytes: nil, count: 0))
  }
}

// @unchecked: the handle has one owner, and changes only through a `mutating` call or an `inout`.
extension ValueBuffer: @unchecked Sendable {}

extension clarder_slice {
  init(_ bytes: UnsafeRawBufferPointer) {
    self.init(bytes: bytes.baseAddress, count: bytes.count)
  }
}

extension UnsafeRawBufferPointer {
  init(_ slice: clarder_slice) {
    self.init(start: slice.bytes, count: slice.count)
  }
}
