/// Bytes that grow at their end.
///
/// A class, so that the containers of one call share it without a copy and without a check for one.
final class ByteBuffer {
  // Unsafe: the buffer owns its memory, of which `count` of `capacity` bytes are set; only the
  // functions here touch it, and each makes sure of its room first.
  @exclusivity(unchecked) private var start: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var capacity = 512
  @exclusivity(unchecked)
  private(set) var count = 0

  init() { start = .allocate(byteCount: capacity, alignment: 16) }

  deinit { start.deallocate() }

  /// Removes the bytes from `newCount` on.
  func truncate(to newCount: Int) {
    precondition(newCount <= count)
    count = newCount
  }

  /// Removes all bytes; false if their room is too large to be kept.
  func truncateForReuse() -> Bool {
    count = 0
    return capacity <= 1 << 18
  }

  @inline(__always)
  private func room(for more: Int) -> UnsafeMutableRawPointer {
    if capacity - count < more { grow(by: more) }
    return start + count
  }

  @inline(never)
  private func grow(by more: Int) {
    capacity = max(2 * capacity, count + more)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    larger.copyMemory(from: start, byteCount: count)
    start.deallocate()
    start = larger
  }

  @inline(__always)
  func append(_ byte: UInt8) {
    room(for: 1).storeBytes(of: byte, as: UInt8.self)
    count += 1
  }

  @inline(__always)
  func append<T: FixedWidthInteger & BitwiseCopyable>(littleEndian number: T) {
    room(for: MemoryLayout<T>.size).storeBytes(of: number.littleEndian, as: T.self)
    count += MemoryLayout<T>.size
  }

  @inline(__always)
  func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    room(for: bytes.count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  /// Appends `number` seven bits at a time, lowest first; all bytes but the last have their top bit
  /// set.
  @inline(__always)
  func append(varint number: Int) {
    var rest = UInt(bitPattern: number)
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends the length of a text, and the text in UTF-8.
  @inline(__always)
  func append(text: String) {
    var text = text
    text.withUTF8 { utf8 in
      append(varint: utf8.count)
      append(UnsafeRawBufferPointer(utf8))
    }
  }

  /// Sets a byte that was appended before.
  @inline(__always)
  func set(_ byte: UInt8, at offset: Int) {
    precondition(offset >= 0 && offset < count)
    start.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
  }

  /// Sets four bytes that were appended before to a number.
  @inline(__always)
  func set(count number: Int, at offset: Int) {
    precondition(offset >= 0 && offset <= count - 4)
    let number = UInt32(clamping: number).littleEndian
    start.storeBytes(of: number, toByteOffset: offset, as: UInt32.self)
  }

  /// All bytes, for the time of the call.
  func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    body(UnsafeRawBufferPointer(start: start, count: count))
  }
}
