import Synchronization

/// The right to make a write later, which is revoked when the write is no longer wanted.
///
/// A batch names it in a condition: ``WriteBatch/Condition/valid(_:)``. The engine checks it when
/// the batch has its turn in the order of commits.
package final class WriteTicket: Sendable {
  private let revoked = Atomic<Bool>(false)

  package init() {}

  /// Makes all conditions fail that name the ticket, in batches that have not had their turn.
  package func revoke() { revoked.store(true, ordering: .releasing) }

  package var isRevoked: Bool { revoked.load(ordering: .acquiring) }
}

extension WriteTicket: Hashable {
  package static func == (left: WriteTicket, right: WriteTicket) -> Bool { left === right }

  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
