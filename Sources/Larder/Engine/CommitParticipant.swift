import Synchronization

/// Takes part in the commits of an engine: admits batches, adds rows, and is notified.
///
/// A write consists of one batch, or of several that are applied together. For each write, the
/// engine makes these calls:
///
/// 1. ``willWrite(_:without:)`` for each batch, in the order of commits, then
///    ``admit(_:without:replacedBytes:)`` if it has rows to apply. A refused batch is left out of
///    the write.
/// 2. ``contribute(to:)`` once, if a batch was admitted.
/// 3. ``ended(didCommit:)`` once the write has succeeded or failed.
/// 4. ``committed(_:_:)`` for each applied batch, in the order of commits, if the write succeeded.
/// 5. ``didWrite(_:without:)`` for each batch of the first step.
///
/// The engine reads ``needs`` before them: without `counting` it skips the calls about room and
/// counts, and without `reports` ``committed(_:_:)``. The rows of ``contribute(to:)`` belong to the
/// same write as the batches, so counts on disk match the entries on disk, even after a crash.
///
/// Calls come one at a time, while other writers wait. A participant must not wait for anything
/// itself, and it must not call the engine.
package protocol CommitParticipant: AnyObject, Sendable {
  /// Whether batches are to be counted, and commits reported, in the next write.
  ///
  /// The engine reads it once for each write, so a write that needs neither costs one call.
  var needs: (counting: Bool, reports: Bool) { get }

  /// Notifies the participant of a batch before it is written.
  ///
  /// What was read before the call may be outdated once the batch is applied. Tickets that the
  /// participant revokes are revoked for all later batches.
  ///
  /// - Parameters:
  ///   - batch: The batch. It may have no row to apply, be refused, or fail.
  ///   - failed: The conditions of the batch that failed. Rows under them are not applied.
  func willWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>)

  /// Notifies the participant that the write of a batch has ended, before its writer returns.
  ///
  /// What was read before the call may be outdated. The batch has taken effect, or not.
  ///
  /// - Parameters:
  ///   - batch: A batch of which the participant was notified before.
  ///   - failed: The conditions of the batch that failed, as before.
  func didWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>)

  /// Admits a batch to the write, or refuses it.
  ///
  /// A batch that ``WriteBatch/isAlwaysAdmitted`` must not be refused.
  ///
  /// - Parameters:
  ///   - batch: The batch, which has not been applied.
  ///   - failed: The conditions of the batch that failed. Rows under them are not applied.
  ///   - replacedBytes: Returns the size of the key and value that the row with this index
  ///     replaces: 0 if there is no entry, nil if it cannot be read. It is called at most once for
  ///     each row, in their order, and for all rows with the same key or for none of them.
  /// - Returns: Nil if the batch was admitted. Otherwise the budget that it would exceed: the write
  ///   of the batch throws ``StoreError/budgetExceeded(bytes:budget:)``.
  func admit(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, replacedBytes: (_ row: Int) -> Int?
  ) -> Shortage?

  /// Adds rows to the write, after all batches were admitted.
  func contribute(to rows: inout WriteBatch)

  /// Ends the write: its admitted batches have all taken effect, or all failed.
  func ended(didCommit: Bool)

  /// Notifies the participant of a batch that has taken effect, before its writer returns.
  ///
  /// It is not called for a batch whose write failed, even if the write turns out to have taken
  /// effect when the database is reopened.
  func committed(_ batch: borrowing WriteBatch, _ commit: Commit)

  /// Notifies the participant that the database was reopened after a failure.
  ///
  /// No other call uses the database before this one returns.
  ///
  /// Reopening may put a write into effect that failed before. An engine that never reopens
  /// anything does not call it.
  ///
  /// - Parameter read: Reads the database.
  /// - Returns: Whether batches that were made before are still right; if not, the write that
  ///   reopened the database throws.
  func reopened(reading read: EngineReader) -> Bool
}

extension CommitParticipant {
  package func willWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>) {}
  package func didWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>) {}
}

/// Reads the value under a key; nil if it is absent.
package typealias EngineReader = (_ key: [UInt8]) throws(StoreError) -> [UInt8]?

/// The right to make a write later, which is revoked when the write is no longer wanted.
///
/// A batch names it in a condition: ``WriteBatch/Condition/valid(_:)``. The engine checks it when
/// the batch has its turn in the order of commits.
package final class WriteTicket: Sendable {
  private let revoked = Atomic<Bool>(false)

  package init() {}

  /// Makes all conditions fail that name the ticket, in batches that are not yet applied.
  package func revoke() { revoked.store(true, ordering: .releasing) }

  package var isRevoked: Bool { revoked.load(ordering: .acquiring) }
}

extension WriteTicket: Hashable {
  package static func == (left: WriteTicket, right: WriteTicket) -> Bool { left === right }

  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The budget that a refused batch would exceed.
package struct Shortage: Hashable, Sendable {
  /// The index of the budget in the list.
  package let budget: Int
  package let limit: Int
  /// The number of bytes that the batch would add.
  package let growth: Int
  /// The number of bytes over the limit with the batch.
  package let excess: Int

  package init(budget: Int, limit: Int, growth: Int, excess: Int) {
    (self.budget, self.limit, self.growth, self.excess) = (budget, limit, growth, excess)
  }
}

extension StoreError {
  /// The error of a write for which there is no room.
  init(_ shortage: Shortage) {
    self = .budgetExceeded(bytes: shortage.limit + shortage.excess, budget: shortage.limit)
  }
}
