import Larder

extension LogWriter {
  /// Appends a batch of puts.
  mutating func addBatch(sequence: UInt64, rows: [(key: [UInt8], value: [UInt8])]) {
    var batch = withUnsafeBytes(of: sequence.littleEndian, Array.init)
    batch += withUnsafeBytes(of: UInt32(rows.count).littleEndian, Array.init)
    for row in rows {
      batch.append(1)
      for text in [row.key, row.value] {
        appendVarint(UInt64(text.count), to: &batch)
        batch += text
      }
    }
    add(batch)
  }
}
