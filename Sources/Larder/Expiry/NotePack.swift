// A pack of notes: which records of a cache expire in a bucket of time, as far as one write added
// it.
//
//   key    0x30, cache id (varint), bucket (8 bytes, order-preserving), number (8 bytes,
//          big-endian)
//   value  as in the metadata key space: four bytes of CRC32C over the physical key and the rest,
//          and then the user keys in their order: for each, how many bytes it shares with the one
//          before (varint), how many follow (varint), and these
//
// This layout is on users' disks. Explained in Documentation.docc/StorageFormat.md.

/// A row of notes.
package struct NotePack: Hashable, Sendable {
  package let cacheID: UInt64
  /// The end of the bucket, in seconds since the reference date.
  package let bucket: Int64
  /// Tells the packs of a bucket apart.
  package let number: UInt64

  package init(cacheID: UInt64, bucket: Int64, number: UInt64) {
    (self.cacheID, self.bucket, self.number) = (cacheID, bucket, number)
  }

  /// Parses the key of a pack; nil if it has another form.
  package init?(key: RawSpan) {
    var offset = 1
    guard key.byteCount > 0, let id = readVarint(key, at: &offset), key.byteCount == offset + 16
    else { return nil }
    func load(_ offset: Int) -> UInt64 {
      UInt64(bigEndian: key.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    self.init(
      cacheID: id, bucket: Larder.number(ofOrderedBits: load(offset)), number: load(offset + 8))
  }

  /// The physical key.
  package var key: [UInt8] {
    var key = KeySpace.notes.prefix(ofCache: cacheID)
    withUnsafeBytes(of: orderedBits(of: bucket).bigEndian) { key.append(contentsOf: $0) }
    withUnsafeBytes(of: number.bigEndian) { key.append(contentsOf: $0) }
    return key
  }

  /// The value with these keys, which are sorted.
  func value(of keys: KeyList) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(keys.byteCount + 2 * keys.count)
    var last = UnsafeRawBufferPointer(start: nil, count: 0)
    keys.forEach { key in
      var shared = 0
      while shared < last.count, shared < key.count, last[shared] == key[shared] { shared += 1 }
      appendVarint(UInt64(shared), to: &body)
      appendVarint(UInt64(key.count - shared), to: &body)
      body.append(contentsOf: UnsafeRawBufferPointer(rebasing: key[shared...]))
      last = key
    }
    return Metadata.sealed(body, under: key)
  }

  /// Calls `body` with each key in the value of this pack; nothing is called if it is damaged.
  ///
  /// - Returns: The number of keys; nil if the value is damaged.
  package func forEachKey(
    in value: RawSpan, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> Int? {
    let value = value.withUnsafeBytes { [UInt8]($0) }
    guard let bytes = Metadata.body(of: value, under: key),
      Self.visitKeys(in: bytes, { _ in }) != nil
    else { return nil }
    return Self.visitKeys(in: bytes, body)
  }

  private static func visitKeys(
    in bytes: [UInt8], _ body: (UnsafeRawBufferPointer) -> Void
  ) -> Int? {
    let span = bytes.span.bytes
    var (offset, count) = (0, 0)
    var key: [UInt8] = []
    while offset < bytes.count {
      guard let shared = readVarint(span, at: &offset), shared <= key.count,
        let added = readVarint(span, at: &offset), added <= bytes.count - offset
      else { return nil }
      key.removeLast(key.count - Int(shared))
      key += bytes[offset..<(offset + Int(added))]
      offset += Int(added)
      count += 1
      key.withUnsafeBytes { body($0) }
    }
    return count
  }
}

extension KeyList {
  /// The keys of the packs of these keys, which are sorted.
  func packs() -> [KeyList] {
    split(keys: ExpiryNotes.mostPending, bytes: ExpiryNotes.mostPendingBytes)
  }

  /// Appends the keys in the value of a pack; false if it is damaged.
  mutating func append(_ pack: NotePack, _ value: RawSpan) -> Bool {
    pack.forEachKey(in: value) { append($0) } != nil
  }
}

extension WriteBatch {
  /// Puts a pack with these keys, which are sorted.
  mutating func put(_ pack: NotePack, _ keys: KeyList) {
    put(pack.key.span.bytes, pack.value(of: keys).span.bytes)
  }
}
