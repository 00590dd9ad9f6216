import LarderBytes

/// Collects the bytes of an encoded key.
///
/// Up to 120 bytes, with those of the store before the key, take no memory from the heap.
public struct KeyBuffer: ~Copyable {
  private typealias Words = (
    UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
    UInt64, UInt64, UInt64
  )

  private var words: Words = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
  /// The bytes of a longer key, which are not in `words`.
  ///
  /// The buffer owns it.
  private var longer: UnsafeMutableRawPointer?
  private var capacity = MemoryLayout<Words>.size
  private(set) var count = 0

  /// The number of bytes before the user's key.
  let prefixCount: Int

  init() { prefixCount = 0 }

  /// Makes a buffer for the physical key of a record, with the id of its cache.
  init(recordOf cacheID: UInt64) {
    var bytes: (UInt64, UInt64) = (0, 0)
    prefixCount = withUnsafeMutableBytes(of: &bytes) { bytes in
      bytes[0] = KeySpace.records.rawValue
      return 1 + putVarint(cacheID, into: UnsafeMutableRawBufferPointer(rebasing: bytes[1...]))
    }
    (words.0, words.1) = bytes
    count = prefixCount
  }

  deinit { longer?.deallocate() }

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
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    if bytes.count > capacity - count { grow(by: bytes.count) }
    let end = count
    if let longer {
      (longer + end).copyMemory(from: start, byteCount: bytes.count)
    } else {
      withUnsafeMutableBytes(of: &words) { words in
        UnsafeMutableRawBufferPointer(rebasing: words[end...]).copyMemory(from: bytes)
      }
    }
    count += bytes.count
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    capacity = max(2 * capacity, count + more)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    withBytes { bytes in
      if let start = bytes.baseAddress { larger.copyMemory(from: start, byteCount: bytes.count) }
    }
    longer?.deallocate()
    longer = larger
  }

  /// Lends the bytes for as long as the call.
  @inline(__always)
  func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
    if let longer { return try body(UnsafeRawBufferPointer(start: longer, count: count)) }
    return try withUnsafeBytes(of: words) { words throws(E) in
      try body(UnsafeRawBufferPointer(rebasing: words[..<count]))
    }
  }
}
