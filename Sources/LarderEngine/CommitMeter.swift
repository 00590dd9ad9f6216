/// Counts the bytes that an engine holds, commit by commit.
///
/// The engine reports each row before it is written, and the meter adds the new counts to the same
/// write. So the counts on disk match the entries on disk, even after a crash. Calls come one at a
/// time, in the order of commits, while other writers wait: they must not wait for anything
/// themselves.
package protocol CommitMeter: AnyObject, Sendable {
  /// Whether anything is counted now; if not, the engine skips the meter.
  var isCounting: Bool { get }

  /// Whether the entry under this key is counted.
  func counts(_ key: UnsafeRawBufferPointer) -> Bool

  /// Reports a row of the current batch.
  ///
  /// - Parameters:
  ///   - key: A key that is counted.
  ///   - written: The size of key and value after the row; 0 if it removes them.
  ///   - replaced: Their size before it; 0 if there was no entry, nil if it cannot be read.
  func add(_ key: UnsafeRawBufferPointer, written: Int, replaced: Int?)

  /// Ends the current batch: admits it to the write, or discards it if it would exceed a budget.
  ///
  /// - Parameter mayGrow: Whether the batch is admitted even if it exceeds a budget.
  /// - Returns: The budget that the batch would exceed; nil if the batch was admitted.
  func admit(mayGrow: Bool) -> Shortage?

  /// Adds rows with the counts after all admitted batches.
  func putCounts(in rows: inout WriteBatch)

  /// Ends the write, whose batches have all taken effect or all failed.
  func end(didCommit: Bool)
}

/// The budget that a batch would exceed.
package struct Shortage: Hashable, Sendable {
  /// The meter's number for the budget.
  package let budget: Int
  package let limit: Int
  /// The number of bytes that the batch would add.
  package let growth: Int
  /// The number of bytes over the limit with the batch.
  package let excess: Int

  package init(budget: Int, limit: Int, growth: Int, excess: Int) {
    self.budget = budget
    self.limit = limit
    self.growth = growth
    self.excess = excess
  }
}
