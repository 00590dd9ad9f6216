// A row of the expiry index. It names an entry and the bucket in which the entry expires; a scan of
// a cache's rows visits its entries in the order of their expiry.
//
//   key    0x20, cache id (varint), bucket (8 bytes, order-preserving), user's key
//   value  size of the record in bytes, its physical key included (varint)
//
// This layout is on users' disks. Explained in Documentation.docc/StorageFormat.md.

package import Foundation
import LarderBytes

/// A row of the expiry index.
package struct IndexRow: Hashable, Sendable {
  private static let bucketBytes = 8

  package let cacheID: UInt64
  package let bucket: Int64
  package let userKey: [UInt8]

  package init(cacheID: UInt64, bucket: Int64, userKey: some Sequence<UInt8>) {
    self.cacheID = cacheID
    self.bucket = bucket
    self.userKey = Array(userKey)
  }

  /// Parses the key of a row; nil if it is too short for one.
  package init?(key: RawSpan) {
    var offset = 1
    guard let id = readVarint(key, at: &offset), let bucket = Self.bucket(in: key, after: offset)
    else { return nil }
    cacheID = id
    self.bucket = bucket
    userKey = key.extracting((offset + Self.bucketBytes)...).withUnsafeBytes { [UInt8]($0) }
  }

  /// The row's physical key.
  package var key: [UInt8] {
    var bytes = KeySpace.expiry.prefix(ofCache: cacheID)
    withUnsafeBytes(of: orderedBits(of: bucket).bigEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: userKey)
    return bytes
  }

  /// The key of the record that the row is about.
  package var recordKey: RecordKey { RecordKey(cacheID: cacheID, userKey: userKey) }

  /// Whether an entry that expires at `moment` may have its row in this bucket.
  package func mayHold(_ moment: Date) -> Bool {
    Double(bucket) >= moment.timeIntervalSinceReferenceDate
  }
}

// Parts of a row, for scans that read millions of them.
extension IndexRow {
  /// The bucket in a row's key, after a prefix of `prefixCount` bytes; nil if the key is too short.
  static func bucket(in key: RawSpan, after prefixCount: Int) -> Int64? {
    guard key.byteCount >= prefixCount + bucketBytes else { return nil }
    let bits = key.unsafeLoadUnaligned(fromByteOffset: prefixCount, as: UInt64.self)
    return number(ofOrderedBits: UInt64(bigEndian: bits))
  }

  /// The number of bytes before the user's key in the keys of a cache's rows.
  static func userKeyOffset(cacheID: UInt64) -> Int {
    KeySpace.expiry.prefix(ofCache: cacheID).count + bucketBytes
  }

  /// The size of a record in the value of its row; nil if the value is malformed.
  package static func recordBytes(in value: RawSpan) -> UInt64? {
    var offset = 0
    guard let size = readVarint(value, at: &offset), offset == value.byteCount else { return nil }
    return size
  }
}

extension WriteBatch {
  /// Puts the index row of a record that has `recordBytes` bytes, its key included.
  mutating func putIndexRow(
    of key: RecordKey, in bucket: Int64, recordBytes: Int, if requirement: Int? = nil
  ) {
    put(if: requirement) { buffer in
      buffer.append(KeySpace.expiry.rawValue)
      buffer.append(varint: key.cacheID)
      buffer.append(bigEndian: orderedBits(of: bucket))
      buffer.append(key.bytes.span.bytes.extracting(key.prefixCount...))
    } value: { buffer in
      buffer.append(varint: UInt64(recordBytes))
    }
  }
}
