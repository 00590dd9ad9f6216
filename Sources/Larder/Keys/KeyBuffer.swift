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
  /// Lends the encoded key.
  @inline(__always)
  func withEncoded<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeTemporaryAllocation(byteCount: stackBytes, alignment: 8) { memory in
      var buffer = KeyBuffer(in: memory)
      encodeKey(into: &buffer)
      return body(buffer.bytes)
    }
  }

  /// The encoded key.
  package func encoded() -> [UInt8] { withEncoded { Array($0) } }

  /// The physical key of the record that a cache has under the key.
  func recordKey(in cacheID: UInt64) -> RecordKey {
    withEncoded { RecordKey(cacheID: cacheID, userKey: $0) }
  }
}
