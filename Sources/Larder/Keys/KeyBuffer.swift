import LarderBytes

/// Collects the bytes of an encoded key.
public struct KeyBuffer: ~Copyable {
  // Unsafe: `start` has room for `capacity` bytes. It is memory that its maker lends, or, once the
  // key is longer than that, memory of its own.
  private var start: UnsafeMutableRawPointer?
  private var capacity: Int
  private var isOwner = false
  private(set) var count = 0

  /// Makes an empty buffer in memory that must outlive it.
  fileprivate init(in memory: UnsafeMutableRawBufferPointer) {
    (start, capacity) = (memory.baseAddress, memory.count)
  }

  deinit { if isOwner { start?.deallocate() } }

  /// Appends `more` to the key.
  public mutating func append(_ more: some Sequence<UInt8>) {
    let isAppended: Void? = more.withContiguousStorageIfAvailable { bytes in
      append(UnsafeRawBufferPointer(bytes))
    }
    guard isAppended == nil else { return }
    for byte in more { withUnsafeBytes(of: byte) { append($0) } }
  }

  @inline(__always)
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    if bytes.count > capacity - count { grow(by: bytes.count) }
    guard let start else { return }
    (start + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  /// Appends the prefix of the physical keys of a cache's records.
  fileprivate mutating func appendPrefix(ofRecordsIn cacheID: UInt64) {
    var bytes: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &bytes) { bytes in
      bytes[0] = KeySpace.records.rawValue
      let count = putVarint(cacheID, into: UnsafeMutableRawBufferPointer(rebasing: bytes[1...]))
      append(UnsafeRawBufferPointer(rebasing: bytes[...count]))
    }
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    capacity = max(2 * capacity, count + more)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    if let start {
      larger.copyMemory(from: start, byteCount: count)
      if isOwner { start.deallocate() }
    }
    (start, isOwner) = (larger, true)
  }

  fileprivate var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: count)
  }
}

/// The bytes of the stack that an encoded key may take; a longer one takes memory from the heap.
private let stackBytes = 512

extension CacheKey {
  /// The encoded key.
  package func encoded() -> [UInt8] {
    withUnsafeTemporaryAllocation(byteCount: stackBytes, alignment: 1) { memory in
      var buffer = KeyBuffer(in: memory)
      encodeKey(into: &buffer)
      return Array(buffer.bytes)
    }
  }

  /// Lends the physical key of the record that a cache has under the key, and the number of the
  /// bytes before the user's key.
  @inline(__always)
  func withRecordKey(
    in cacheID: UInt64, _ body: (_ bytes: UnsafeRawBufferPointer, _ prefixCount: Int) -> Void
  ) {
    // Not generic: a result of a generic type is copied by slow, general code.
    withUnsafeTemporaryAllocation(byteCount: stackBytes, alignment: 1) { memory in
      var buffer = KeyBuffer(in: memory)
      buffer.appendPrefix(ofRecordsIn: cacheID)
      let prefixCount = buffer.count
      encodeKey(into: &buffer)
      body(buffer.bytes, prefixCount)
    }
  }
}
