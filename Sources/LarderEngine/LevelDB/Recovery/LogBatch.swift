import LarderBytes

// The format of a batch in LevelDB's write-ahead log. After a header of twelve bytes come its rows:
//
//   put      1, length of the key (varint), key, length of the value (varint), value
//   delete   0, length of the key (varint), key

/// Reads batches of LevelDB's write-ahead log.
package enum LogBatch {
  private static let headerBytes = 12

  /// The highest commit sequence in the stamps of the batch's values; nil if none has a stamp.
  ///
  /// The stamp of a separated value is taken as it is: its payload is not here.
  package static func highestCommit(
    in batch: RawSpan, stamp: Stamp, separation: ValueSeparation? = nil
  ) -> UInt64? {
    var highest: UInt64?
    forEachPut(in: batch) { key, value in
      let isSeparated = key.withUnsafeBytes { key in
        value.withUnsafeBytes { value in
          separation.map { SeparatedRow.isOne(value, under: key, by: $0) } ?? false
        }
      }
      guard let sequence = stamp.sequence(of: value),
        isSeparated || stamp.isIntact(value, key: key)
      else { return }
      highest = max(highest ?? 0, sequence)
    }
    return highest
  }

  /// Calls `body` with the key and the value of each put.
  static func forEachPut<E: Error>(
    in batch: RawSpan, _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> Void
  ) throws(E) {
    var at = headerBytes
    while at < batch.byteCount {
      let tag = batch.unsafeLoad(fromByteOffset: at, as: UInt8.self)
      at += 1
      guard tag <= 1, let key = text(in: batch, at: &at) else { return }
      guard tag == 1 else { continue }
      guard let value = text(in: batch, at: &at) else { return }
      try body(batch.extracting(key), batch.extracting(value))
    }
  }

  private static func text(in batch: RawSpan, at offset: inout Int) -> Range<Int>? {
    guard let count = readVarint(batch, at: &offset), count <= batch.byteCount - offset else {
      return nil
    }
    defer { offset += Int(count) }
    return offset..<(offset + Int(count))
  }
}
