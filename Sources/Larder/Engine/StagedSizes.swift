/// The sizes of the rows staged by a write, which the engine cannot read back yet.
struct StagedSizes {
  /// Up to this many rows are compared with each other, without a table.
  private static let fewRows = 8

  private let isAlone: Bool
  private var sizes: [[UInt8]: Int] = [:]

  /// - Parameter isAlone: Whether the write consists of one batch.
  init(isAlone: Bool) { self.isAlone = isAlone }

  /// Asks `participant` to admit a batch, without the rows whose condition has failed.
  ///
  /// `stored` returns the size of the key and value that the engine holds under a key: 0 if there
  /// is no entry, nil if it cannot be read.
  ///
  /// - Returns: The budget that it would exceed; nil if it was admitted. It must then be staged.
  mutating func admit(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, by participant: any CommitParticipant,
    stored: (UnsafeRawBufferPointer) -> Int?
  ) -> Shortage? {
    guard !isAlone || batch.rows.count > Self.fewRows else {
      return admitFew(batch, without: failed, by: participant, stored: stored)
    }
    var replacedSizes: [(key: [UInt8], size: Int?)] = []
    let shortage = batch.bytes.withBytes { bytes in
      participant.admit(batch, without: failed) { index in
        let row = batch.rows[index]
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        let name = Array(key)
        let staged = sizes.updateValue(row.size, forKey: name)
        replacedSizes.append((name, staged))
        return staged ?? stored(key)
      }
    }
    if shortage != nil {
      for (key, size) in replacedSizes.reversed() { sizes[key] = size }
    }
    return shortage
  }

  private func admitFew(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, by participant: any CommitParticipant,
    stored: (UnsafeRawBufferPointer) -> Int?
  ) -> Shortage? {
    batch.bytes.withBytes { bytes in
      participant.admit(batch, without: failed) { index in
        let row = batch.rows[index]
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        let earlier = batch.rows[..<index].last { earlier in
          earlier.keyCount == row.keyCount && earlier.isKept(without: failed)
            && bytes[earlier.key].elementsEqual(key)
        }
        return earlier?.size ?? stored(key)
      }
    }
  }
}
