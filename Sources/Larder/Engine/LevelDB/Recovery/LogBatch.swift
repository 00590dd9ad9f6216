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

  /// A row of a batch.
  package struct Row: Sendable {
    package let key: [UInt8]
    /// The place of the value in the batch; nil for a removal.
    package let value: Range<Int>?
  }

  /// The rows of a batch; nil if they are not as many as its header says, or malformed.
  package static func rows(of batch: RawSpan) -> [Row]? {
    guard let count = rowCount(of: batch) else { return nil }
    var rows: [Row] = []
    var at = headerBytes
    while at < batch.byteCount {
      let tag = batch.unsafeLoad(fromByteOffset: at, as: UInt8.self)
      at += 1
      guard tag <= 1, let key = text(in: batch, at: &at) else { return nil }
      var value: Range<Int>?
      if tag == 1 {
        value = text(in: batch, at: &at)
        guard value != nil else { return nil }
      }
      rows.append(Row(key: [UInt8](batch.extracting(key)), value: value))
    }
    return rows.count == count ? rows : nil
  }

  /// LevelDB's sequence of the first row of a batch; nil if it has no header.
  package static func sequence(of batch: RawSpan) -> UInt64? {
    guard batch.byteCount >= headerBytes else { return nil }
    return UInt64(littleEndian: batch.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self))
  }

  /// The number of rows that the header of a batch states; nil if it has no header.
  package static func rowCount(of batch: RawSpan) -> Int? {
    guard batch.byteCount >= headerBytes else { return nil }
    return Int(
      UInt32(littleEndian: batch.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt32.self)))
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
