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
