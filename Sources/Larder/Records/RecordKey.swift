/// The physical key of a record: the space of records, the id of the cache, the user's key.
package struct RecordKey: Hashable, Sendable {
  package let cacheID: UInt64
  package let bytes: [UInt8]
  /// The number of bytes before the user's key.
  let prefixCount: Int

  /// - Complexity: One allocation.
  package init(cacheID: UInt64, userKey: some Sequence<UInt8>) {
    var bytes = KeySpace.records.prefix(ofCache: cacheID)
    prefixCount = bytes.count
    bytes.append(contentsOf: userKey)
    self.cacheID = cacheID
    self.bytes = bytes
  }

  /// Copies and parses a physical key; nil if it has no cache id.
  package init?(_ key: RawSpan) {
    var offset = 1
    guard let id = readVarint(key, at: &offset) else { return nil }
    cacheID = id
    prefixCount = offset
    bytes = [UInt8](key)
  }

  package var userKey: ArraySlice<UInt8> { bytes[prefixCount...] }

  /// Lends the user's key.
  @inline(__always)
  func withUserKey<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[prefixCount...])) }
  }

  /// Throws if the user's key is over its limit.
  func checkLimit() throws(StoreError) {
    let count = bytes.count - prefixCount
    guard count <= maximumKeyBytes else {
      throw .invalidArgument("a key of \(count) bytes; the limit is \(maximumKeyBytes)")
    }
  }

  /// The number of bytes before the user's key in a record's physical key.
  static func prefixCount(of recordKey: RawSpan) -> Int {
    var offset = 1
    _ = readVarint(recordKey, at: &offset)
    return offset
  }
}

extension WriteBatch.Row {
  /// The id of the cache in the row's key; nil if it is not the row of a record.
  func recordCacheID(in bytes: UnsafeRawBufferPointer) -> UInt64? {
    let key = UnsafeRawBufferPointer(rebasing: bytes[key])
    guard key.first == KeySpace.records.rawValue else { return nil }
    var offset = 1
    return readVarint(key.bytes, at: &offset)
  }
}

extension KeyKind {
  /// The user's key of a record in words, for messages and tools.
  func describe(_ key: RecordKey) -> String {
    describe(key.bytes.span.bytes.extracting(key.prefixCount...))
  }
}
