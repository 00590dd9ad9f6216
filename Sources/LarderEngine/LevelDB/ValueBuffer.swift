import CLarderLevelDB

/// Memory that values are read into, again and again.
///
/// It keeps its memory from one read to the next, so a loop of reads allocates once.
package struct ValueBuffer: ~Copyable {
  /// What the engine of this folder reads into.
  ///
  /// It belongs to this buffer alone.
  let handle: OpaquePointer
  private let spare: SpareBuffer?

  package init() {
    handle = clarder_buffer_create()
    spare = nil
  }

  /// Takes what an earlier buffer has left in `spare`, and leaves it there when it goes.
  package init(from spare: SpareBuffer) {
    handle = spare.take() ?? clarder_buffer_create()
    self.spare = spare
  }

  deinit {
    if let spare {
      spare.leave(handle)
    } else {
      clarder_buffer_free(handle)
    }
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

extension ValueBuffer {
  /// Reads the value under `key` of a LevelDB database, replacing what the buffer held.
  ///
  /// False when the key is absent; the buffer is then empty.
  mutating func read(
    _ key: RawSpan, from database: OpaquePointer
  ) throws(EngineError) -> Bool {
    var found = false
    let status = key.withUnsafeBytes { key in
      clarder_get(database, clarder_slice(key), handle, &found)
    }
    try check(status)
    return found
  }

  /// The value under `key` of a LevelDB database in an array of its own; nil when it is absent.
  static func value(
    under key: [UInt8], of database: OpaquePointer
  ) throws(EngineError) -> [UInt8]? {
    var buffer = ValueBuffer()
    guard try buffer.read(key.span.bytes, from: database) else { return nil }
    return buffer.withBytes { bytes in bytes.withUnsafeBytes { [UInt8]($0) } }
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
