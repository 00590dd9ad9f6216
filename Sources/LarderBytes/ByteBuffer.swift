#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Bytes that grow at their end.
///
/// What an array of bytes is, with less to be asked at each append: it has one owner, and so is
/// never shared and never copied. A batch's rows and the payloads in them are written into one.
@usableFromInline package struct ByteBuffer: ~Copyable {
  // Unsafe: the buffer owns its memory, of which `count` of `capacity` bytes are set; only the
  // functions here touch it, and each makes sure of its room first.
  @usableFromInline internal var start: UnsafeMutableRawPointer?
  @usableFromInline internal var capacity = 0
  @usableFromInline internal var used = 0

  /// Makes an empty buffer, which has no memory yet.
  @inlinable package init() {}

  deinit { Self.release(start) }

  /// How many bytes there are.
  @inlinable package var count: Int { used }

  /// Removes the bytes from `newCount` on, and keeps their memory.
  @inlinable package mutating func truncate(to newCount: Int) {
    precondition(newCount >= 0 && newCount <= used)
    used = newCount
  }

  /// Where `more` bytes can be put.
  @inlinable @inline(__always)
  internal mutating func room(for more: Int) -> UnsafeMutableRawPointer {
    if capacity - used < more || start == nil { grow(by: more) }
    return unsafe start.unsafelyUnwrapped + used
  }

  // By `realloc`: a large one grows without being copied. Memory from `allocate` is aligned by a
  // slower call.
  @usableFromInline @inline(never)
  internal mutating func grow(by more: Int) {
    capacity = max(256, 2 * capacity, used + more)
    guard let larger = realloc(start, capacity) else { fatalError("no memory for a buffer") }
    start = larger
  }

  @usableFromInline
  internal static func release(_ memory: UnsafeMutableRawPointer?) { free(memory) }
}

// @unchecked: the memory has one owner, and changes only through a `mutating` call.
extension ByteBuffer: @unchecked Sendable {}

// MARK: - Appending

extension ByteBuffer {
  @inlinable @inline(__always)
  package mutating func append(_ byte: UInt8) {
    room(for: 1).storeBytes(of: byte, as: UInt8.self)
    used += 1
  }

  @inlinable @inline(__always)
  package mutating func append<T: FixedWidthInteger & BitwiseCopyable>(littleEndian number: T) {
    room(for: MemoryLayout<T>.size).storeBytes(of: number.littleEndian, as: T.self)
    used += MemoryLayout<T>.size
  }

  @inlinable @inline(__always)
  package mutating func append<T: FixedWidthInteger & BitwiseCopyable>(bigEndian number: T) {
    append(littleEndian: number.byteSwapped)
  }

  @inlinable @inline(__always)
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    room(for: bytes.count).copyMemory(from: source, byteCount: bytes.count)
    used += bytes.count
  }

  @inlinable package mutating func append(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { append($0) }
  }

  @inlinable package mutating func append(_ bytes: [UInt8]) { append(bytes.span.bytes) }

  @inlinable package mutating func append(zeros count: Int) {
    room(for: count).initializeMemory(as: UInt8.self, repeating: 0, count: count)
    used += count
  }

  /// Appends `number` as a varint (see ``appendVarint(_:to:)``).
  @inlinable @inline(__always)
  package mutating func append(varint number: UInt64) {
    if number < 0x80 { return append(UInt8(truncatingIfNeeded: number)) }
    append(longVarint: number)
  }

  @usableFromInline
  internal mutating func append(longVarint number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends the length of a text as a varint, and the text in UTF-8.
  @inlinable @inline(__always)
  package mutating func append(text: String) {
    // One that Foundation keeps in another form is made a Swift string first.
    if text.utf8.withContiguousStorageIfAvailable({ append(utf8: $0) }) == nil {
      var text = text
      text.withUTF8 { append(utf8: $0) }
    }
  }

  @inlinable @inline(__always)
  internal mutating func append(utf8: UnsafeBufferPointer<UInt8>) {
    append(varint: UInt64(utf8.count))
    append(UnsafeRawBufferPointer(utf8))
  }
}

// MARK: - What was appended before

extension ByteBuffer {
  /// Sets a byte that was appended before.
  @inlinable package mutating func set(_ byte: UInt8, at offset: Int) {
    precondition(offset >= 0 && offset < used)
    unsafe start.unsafelyUnwrapped.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
  }

  /// Sets four bytes that were appended before to a number.
  @inlinable package mutating func set(_ number: UInt32, at offset: Int) {
    precondition(offset >= 0 && offset <= used - 4)
    unsafe start.unsafelyUnwrapped.storeBytes(
      of: number.littleEndian, toByteOffset: offset, as: UInt32.self)
  }

  /// All bytes, for the time of the call.
  @inlinable package func withBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeRawBufferPointer(start: start, count: used))
  }

  /// All bytes, to be changed in the call.
  @inlinable package mutating func withMutableBytes<R, E: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeMutableRawBufferPointer(start: start, count: used))
  }
}

extension Array<UInt8> {
  /// The bytes of a buffer.
  package init(_ buffer: borrowing ByteBuffer) {
    self = buffer.withBytes { Array($0) }
  }
}
