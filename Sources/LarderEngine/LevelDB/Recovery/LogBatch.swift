import LarderBytes

// The format of a batch in LevelDB's write-ahead log. After a header of twelve bytes come its rows:
//
//   put      1, length of the key (varint), key, length of the value (varint), value
//   delete   0, length of the key (varint), key

/// Reads batches of LevelDB's write-ahead log.
package enum LogBatch {
  private static let headerBytes = 12

  /// The highest commit sequence in the stamps of the batch's values; nil if none has a stamp.
  package static func highestCommit(in batch: RawSpan, stamp: Stamp) -> UInt64? {
    var highest: UInt64?
    var at = headerBytes
    while at < batch.byteCount {
      let tag = batch.unsafeLoad(fromByteOffset: at, as: UInt8.self)
      at += 1
      guard tag <= 1, let key = text(in: batch, at: &at) else { break }
      guard tag == 1 else { continue }
      guard let value = text(in: batch, at: &at) else { break }
      let bytes = batch.extracting(value)
      guard let sequence = stamp.sequence(of: bytes),
        stamp.isIntact(bytes, key: batch.extracting(key))
      else { continue }
      highest = max(highest ?? 0, sequence)
    }
    return highest
  }

  private static func text(in batch: RawSpan, at offset: inout Int) -> Range<Int>? {
    guard let count = readVarint(batch, at: &offset), count <= batch.byteCount - offset else {
      return nil
    }
    defer { offset += Int(count) }
    return offset..<(offset + Int(count))
  }
}
