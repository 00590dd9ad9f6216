import CLarder
import Synchronization

/// Memory that values are read into, again and again.
///
/// It keeps its memory from one read to the next, so a loop of reads allocates once.
package struct ValueBuffer: ~Copyable {
  let memory: ValueMemory
  private let spare: SpareBuffer?

  package init() {
    memory = ValueMemory()
    spare = nil
  }

  /// Takes the memory that an earlier buffer left in `spare`, and leaves it there at its own end.
  package init(from spare: SpareBuffer) {
    memory = spare.take() ?? ValueMemory()
    self.spare = spare
  }

  deinit {
    // Without `if let`, which would retain it.
    spare?.leave(memory) ?? memory.free()
  }

  /// The number of bytes in the buffer.
  package var count: Int { memory.bytes.count }

  /// Lends the bytes for as long as the call.
  package func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(memory.bytes.bytes)
  }

  /// Makes it `count` bytes long, and lends them to be changed before its next use.
  mutating func resize(to count: Int) -> UnsafeMutableRawBufferPointer {
    memory.resize(to: count)
  }

  /// Replaces the contents of the buffer.
  mutating func assign(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { memory.assign($0) }
  }

  /// Empties the buffer.
  mutating func clear() {
    memory.assign(UnsafeRawBufferPointer(start: nil, count: 0))
  }
}

// @unchecked: the memory has one owner, and changes only through a `mutating` call or an `inout`.
extension ValueBuffer: @unchecked Sendable {}

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

/// A string of C++, which is what LevelDB reads values into.
///
/// It is a pointer: its owner, a ``ValueBuffer``, frees it.
struct ValueMemory {
  let handle: OpaquePointer

  init() { handle = clarder_buffer_create() }

  init(handle: OpaquePointer) { self.handle = handle }

  func free() { clarder_buffer_free(handle) }

  /// The bytes that it holds; they live until it is changed or freed.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(clarder_buffer_slice(handle)) }

  /// Makes it `count` bytes long, and lends them to be changed.
  func resize(to count: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: clarder_buffer_resize(handle, count), count: count)
  }

  func assign(_ bytes: UnsafeRawBufferPointer) {
    clarder_buffer_assign(handle, clarder_slice(bytes))
  }
}

extension ValueBuffer {
  /// Reads the value under `key` of a LevelDB database, replacing the contents of the buffer.
  ///
  /// False if the key is absent; the buffer is then empty.
  mutating func read(
    _ key: RawSpan, from database: OpaquePointer
  ) throws(StoreError) -> Bool {
    var found = false
    let status = key.withUnsafeBytes { key in
      clarder_get(database, clarder_slice(key), memory.handle, &found)
    }
    try check(status)
    return found
  }

  /// The value under `key` of a LevelDB database, in an array of its own; nil if it is absent.
  static func value(
    under key: [UInt8], of database: OpaquePointer
  ) throws(StoreError) -> [UInt8]? {
    var buffer = ValueBuffer()
    guard try buffer.read(key.span.bytes, from: database) else { return nil }
    return buffer.withBytes { [UInt8]($0) }
  }
}
