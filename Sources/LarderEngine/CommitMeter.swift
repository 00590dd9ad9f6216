import LarderBytes

/// Counts the bytes that an engine holds, commit by commit.
///
/// It is told of each row before it is written, and adds the new counts to the same write: so the
/// counts on disk are always those of what is there, after a crash at any point too. Calls come one
/// after another, in the order of commits, and others wait meanwhile: they must not wait for
/// anything themselves.
package protocol CommitMeter: AnyObject, Sendable {
  /// Whether anything is counted now; if not, a write costs nothing more.
  var isCounting: Bool { get }

  /// Whether what is under this key is counted.
  func counts(_ key: UnsafeRawBufferPointer) -> Bool

  /// Tells of a row of the batch that is made.
  ///
  /// - Parameters:
  ///   - key: A key that is counted.
  ///   - written: How long key and value are from now on; 0 when they are removed.
  ///   - replaced: How long they were; 0 when there was nothing, nil when it cannot be read.
  func add(_ key: UnsafeRawBufferPointer, written: Int, replaced: Int?)

  /// Takes the rows since the last call as a batch of the write that is made, or forgets them.
  ///
  /// - Parameter mayGrow: Whether the batch is taken whatever it adds.
  /// - Returns: Nil when it was taken; else what it is short of.
  func admit(mayGrow: Bool) -> Shortage?

  /// Adds the counts as they are after all batches that were admitted.
  func putCounts(in rows: inout WriteBatch)

  /// Ends the write: its batches have taken effect, or none has.
  func end(didCommit: Bool)
}

/// The budget that a batch would exceed.
package struct Shortage: Hashable, Sendable {
  /// What the meter calls the budget.
  package let budget: Int
  package let limit: Int
  /// How many bytes the batch would add.
  package let growth: Int
  /// How many bytes it would be over the limit by.
  package let excess: Int

  package init(budget: Int, limit: Int, growth: Int, excess: Int) {
    self.budget = budget
    self.limit = limit
    self.growth = growth
    self.excess = excess
  }
}

/// How long what is staged of a write is, of which an engine cannot read anything yet.
struct StagedSizes {
  /// Up to so many rows are compared with each other, without a table.
  private static let fewRows = 8

  private let isAlone: Bool
  private var sizes: [[UInt8]: Int] = [:]

  /// - Parameter isAlone: Whether the write is of one batch.
  init(isAlone: Bool) { self.isAlone = isAlone }

  /// Tells `meter` of the rows of a batch, without those whose condition has failed.
  ///
  /// `stored` answers how long key and value are that the engine holds: 0 for nothing, nil when it
  /// cannot be told.
  ///
  /// - Returns: What the batch is short of; nil when it was admitted, and is to be staged.
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
  /// How long key and value are once the row is applied.
  fileprivate var size: Int { kind == .remove ? 0 : keyCount + valueCount }
}
