// Physical keys: a prefix before the user's key, so that one ordered map holds everything.
//
//   0x00  metadata   "format" | "next-id" | "sequence" (the engine's) | "cache/" name
//                    | "reclaim/" id as 8 bytes, big-endian | "migrate/" id likewise
//                    | "bytes/" id likewise | "tag/" tag | "notes"
//   0x10  records    cache id (varint), key
//   0x20  expiry     of earlier versions: one row for each save, which nothing reads any more
//   0x30  notes      cache id (varint), bucket (8 bytes, order-preserving), number (8 bytes)
//   0x40  unshared   cache id (varint), key
//
// This layout is on users' disks. Explained in Documentation.docc/StorageFormat.md.

/// The first byte of a physical key.
package enum KeySpace: UInt8, CaseIterable {
  case metadata = 0x00
  case records = 0x10
  case expiry = 0x20
  case notes = 0x30
  case unshared = 0x40

  /// The prefix of all keys in this space that belong to a cache.
  package func prefix(ofCache id: UInt64) -> [UInt8] {
    // One allocation, with room for a key.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(64)
    bytes.append(rawValue)
    appendVarint(id, to: &bytes)
    return bytes
  }
}

extension KeySpace {
  /// The bytes of a cache's records, keys and values, and whether all of them could be read.
  ///
  /// - Complexity: One scan.
  package static func recordBytes(
    ofCache id: UInt64, in engine: any StorageEngine
  ) throws(StoreError) -> (bytes: Int, isComplete: Bool) {
    var sum = 0
    do throws(StoreError) {
      let cursor = try engine.headCursor(over: EngineRange(prefix: records.prefix(ofCache: id)))
      while try cursor.next() {
        sum += cursor.withEntry { key, _ in key.byteCount } + cursor.valueCount
      }
    } catch .corrupt {
      // Thrown at the end of the scan: everything readable was counted.
      return (sum, false)
    }
    return (sum, true)
  }
}

extension KeyRange {
  /// The physical range of these keys in the cache whose records begin with `prefix`.
  func engineRange(after prefix: [UInt8]) -> EngineRange {
    EngineRange(
      from: prefix + lower,
      upTo: upper.map { prefix + $0 } ?? EngineRange.successor(ofPrefix: prefix))
  }
}
