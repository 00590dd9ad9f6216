#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A byte array with one owner and cheap appends.
///
/// A buffer is never shared and never copied, so an append needs no uniqueness check. A batch's
/// rows and their payloads are written into one buffer.
package struct ByteBuffer: ~Copyable {
  // Unsafe: the buffer owns its memory; the first `used` of `capacity` bytes are initialized. Only
  // the functions here access it, and each reserves the room it needs first. So `used` never
  // exceeds `capacity`, and sums and differences of them, written `&+` and `&-`, do not overflow.
  private var start: UnsafeMutableRawPointer?
  package private(set) var capacity = 0
  private var used = 0

  /// Makes an empty buffer without allocating memory.
  package init() {}

  deinit { Self.release(start) }

  /// The number of bytes in the buffer.
  package var count: Int { used }

  /// Removes the bytes from `newCount` on and keeps the capacity.
  package mutating func truncate(to newCount: Int) {
    precondition(newCount >= 0 && newCount <= used)
    used = newCount
  }

  /// Reserves room for `more` bytes and returns the address behind the last byte.
  ///
  /// It leaves room for another byte, so that there is memory even if `more` is 0.
  @inline(__always)
  private mutating func room(for more: Int) -> UnsafeMutableRawPointer {
    if capacity &- used <= more { grow(by: more) }
    return unsafe start.unsafelyUnwrapped + used
  }

  // `realloc` can grow a large block without copying it. `allocate` would use a slower, aligned
  // allocation.
  @inline(never)
  private mutating func grow(by more: Int) {
    capacity = max(256, 2 * capacity, used + more + 1)
    guard let larger = realloc(start, capacity) else { fatalError("no memory for a buffer") }
    start = larger
  }

  private static func release(_ memory: UnsafeMutableRawPointer?) { free(memory) }
}

// @unchecked: the memory has one owner, and changes only through a `mutating` call.
extension ByteBuffer: @unchecked Sendable {}

// MARK: - Appending

extension ByteBuffer {
  @inline(__always)
  package mutating func append(_ byte: UInt8) {
    room(for: 1).storeBytes(of: byte, as: UInt8.self)
    used &+= 1
  }

  @inline(__always)
  package mutating func append<T: FixedWidthInteger & BitwiseCopyable>(littleEndian number: T) {
    room(for: MemoryLayout<T>.size).storeBytes(of: number.littleEndian, as: T.self)
    used &+= MemoryLayout<T>.size
  }

  @inline(__always)
  package mutating func append<T: FixedWidthInteger & BitwiseCopyable>(bigEndian number: T) {
    append(littleEndian: number.byteSwapped)
  }

  @inline(__always)
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    room(for: bytes.count).copyMemory(from: source, byteCount: bytes.count)
    used &+= bytes.count
  }

  package mutating func append(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { append($0) }
  }

  package mutating func append(_ bytes: [UInt8]) { append(bytes.span.bytes) }

  package mutating func append(zeros count: Int) {
    room(for: count).initializeMemory(as: UInt8.self, repeating: 0, count: count)
    used &+= count
  }

  /// Appends `number` as a varint (see ``appendVarint(_:to:)``).
  @inline(__always)
  package mutating func append(varint number: UInt64) {
    if number < 0x80 { return append(UInt8(truncatingIfNeeded: number)) }
    append(longVarint: number)
  }

  private mutating func append(longVarint number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends the UTF-8 length of `text` as a varint, followed by the UTF-8 bytes.
  @inline(__always)
  package mutating func append(text: String) {
    // A string bridged from Foundation is converted to a native Swift string first.
    if text.utf8.withContiguousStorageIfAvailable({ append(utf8: $0) }) == nil {
      var text = text
      text.withUTF8 { append(utf8: $0) }
    }
  }

  @inline(__always)
  private mutating func append(utf8: UnsafeBufferPointer<UInt8>) {
    let count = utf8.count
    if count < 0x80, let source = utf8.baseAddress {
      // Most texts: the length and the bytes need room once.
      let end = room(for: 1 &+ count)
      end.storeBytes(of: UInt8(truncatingIfNeeded: count), as: UInt8.self)
      (end + 1).copyMemory(from: source, byteCount: count)
      used &+= 1 &+ count
    } else {
      append(varint: UInt64(count))
      append(UnsafeRawBufferPointer(utf8))
    }
  }
}

extension ByteBuffer {
  /// Appends the bytes that `body` writes into `room`, and whose number it returns.
  ///
  /// `room` has `capacity` bytes, behind `contents`, the bytes of the buffer so far.
  package mutating func append(
    upTo capacity: Int,
    _ body: (_ contents: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) -> Int
  ) {
    let end = room(for: capacity)
    let count = body(
      UnsafeRawBufferPointer(start: start, count: used),
      UnsafeMutableRawBufferPointer(start: end, count: capacity))
    precondition(count >= 0 && count <= capacity)
    used &+= count
  }
}

// MARK: - Reading and changing the contents

extension ByteBuffer {
  /// Removes the bytes in `range`; the ones behind it move down.
  package mutating func remove(_ range: Range<Int>) {
    precondition(range.lowerBound >= 0 && range.upperBound <= used)
    guard let start, !range.isEmpty else { return }
    (start + range.lowerBound).copyMemory(
      from: start + range.upperBound, byteCount: used - range.upperBound)
    used -= range.count
  }

  /// Overwrites the byte at `offset`.
  package mutating func set(_ byte: UInt8, at offset: Int) {
    precondition(offset >= 0 && offset < used)
    unsafe start.unsafelyUnwrapped.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
  }

  /// Overwrites the four bytes at `offset` with `number`, little-endian.
  package mutating func set(_ number: UInt32, at offset: Int) {
    precondition(offset >= 0 && offset <= used &- 4)
    unsafe start.unsafelyUnwrapped.storeBytes(
      of: number.littleEndian, toByteOffset: offset, as: UInt32.self)
  }

  /// Calls `body` with the bytes, which are valid only during the call.
  package func withBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeRawBufferPointer(start: start, count: used))
  }

  /// Calls `body` with the bytes, which it may change; they are valid only during the call.
  package mutating func withMutableBytes<R, E: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeMutableRawBufferPointer(start: start, count: used))
  }
}

extension Array<UInt8> {
  /// Copies the bytes of `buffer`.
  package init(_ buffer: borrowing ByteBuffer) {
    self = buffer.withBytes { Array($0) }
  }
}

extension Array<UInt8> {
  /// Copies the bytes of a span.
  package init(_ bytes: RawSpan) {
    self = bytes.withUnsafeBytes { [UInt8]($0) }
  }
}
