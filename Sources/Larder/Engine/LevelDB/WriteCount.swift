import Synchronization

/// Counts the groups of batches that were written, and the times the database was reopened.
///
/// A leader increases the count before the next one leads. So if a leader finds the count that a
/// reader found before it read, nothing was written in between. A write that the reader saw half
/// of, or that failed and took effect later, has increased it.
final class WriteCount: Sendable {
  private let count = Atomic(0)

  var now: Int { count.load(ordering: .acquiring) }
  func increase() { count.add(1, ordering: .acquiringAndReleasing) }
}
