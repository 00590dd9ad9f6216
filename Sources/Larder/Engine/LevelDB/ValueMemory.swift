import CLarderLevelDB
import LarderBytes

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
