import LarderBytes

/// The sizes of the rows staged by a write, which the engine cannot read back yet.
struct StagedSizes {
  /// Up to this many rows are compared with each other, without a table.
  private static let fewRows = 8

  private let isAlone: Bool
  private var sizes: [[UInt8]: Int] = [:]

  /// - Parameter isAlone: Whether the write consists of one batch.
  init(isAlone: Bool) { self.isAlone = isAlone }

  /// Reports the rows of a batch to `meter`, except those whose condition has failed.
  ///
  /// `stored` returns the size of the key and value that the engine holds under a key: 0 if there
  /// is no entry, nil if it cannot be read.
  ///
  /// - Returns: The budget that the batch would exceed; nil if the batch was admitted. It must then
  ///   be staged.
  mutating func add(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, to meter: any CommitMeter,
    stored: (UnsafeRawBufferPointer) -> Int?
  ) -> Shortage? {
    guard !isAlone || batch.rows.count > Self.fewRows else {
      addFew(batch, without: failed, to: meter, stored: stored)
      return meter.admit(mayGrow: batch.mayExceedBudget)
    }
    var replacedSizes: [(key: [UInt8], size: Int?)] = []
    batch.bytes.withBytes { bytes in
      for row in batch.rows where row.isKept(without: failed) {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        guard meter.counts(key) else { continue }
        let name = Array(key)
        let staged = sizes.updateValue(row.size, forKey: name)
        replacedSizes.append((name, staged))
        meter.add(key, written: row.size, replaced: staged ?? stored(key))
      }
    }
    guard let shortage = meter.admit(mayGrow: batch.mayExceedBudget) else { return nil }
    for (key, size) in replacedSizes.reversed() { sizes[key] = size }
    return shortage
  }

  private func addFew(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, to meter: any CommitMeter,
    stored: (UnsafeRawBufferPointer) -> Int?
  ) {
    batch.bytes.withBytes { bytes in
      for (index, row) in batch.rows.enumerated() where row.isKept(without: failed) {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        guard meter.counts(key) else { continue }
        let earlier = batch.rows[..<index].last { earlier in
          earlier.keyCount == row.keyCount && earlier.isKept(without: failed)
            && bytes[earlier.key].elementsEqual(key)
        }
        meter.add(key, written: row.size, replaced: earlier?.size ?? stored(key))
      }
    }
  }
}

extension WriteBatch.Row {
  /// The size of key and value once the row is applied.
  fileprivate var size: Int { kind == .remove ? 0 : keyCount + valueCount }
}
