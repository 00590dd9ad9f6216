import Synchronization

/// From which bucket on the expiry index of a cache may have rows, while its store is open.
///
/// It is a bound from below, kept in memory only: it lets a sweep with nothing to do end at once,
/// and lets one with something to do begin behind the rows that the last one deleted. After the
/// store is opened it is nothing that excludes any bucket.
///
/// No lock orders saves and sweeps, so the order of their steps does. A save notes its bucket when
/// its row is committed; a sweep takes the notes before it makes its cursor. So a row that the
/// cursor does not show was committed after it was made, and its note comes after that, too.
final class NextDue: Sendable {
  /// What the last sweep has found.
  private let found = Atomic<Int64>(.min)
  /// The earliest bucket that was written to since the last sweep took it.
  private let noted = Atomic<Int64>(.max)

  /// Whether there may be rows in `bucket` or before it.
  func isDue(at bucket: Int64) -> Bool {
    noted.load(ordering: .acquiring) <= bucket || found.load(ordering: .acquiring) <= bucket
  }

  /// Notes a row that was committed.
  func note(_ bucket: Int64) {
    guard bucket < noted.load(ordering: .acquiring) else { return }
    noted.min(bucket, ordering: .acquiringAndReleasing)
  }

  /// Takes the notes, and answers them and what the last sweep has found.
  ///
  /// For whoever sweeps: one at a time.
  func take() -> (found: Int64, noted: Int64) {
    let noted = noted.exchange(.max, ordering: .acquiringAndReleasing)
    let found = found.load(ordering: .acquiring)
    // Until the sweep says what it has found, which it may never do.
    self.found.store(min(found, noted), ordering: .releasing)
    return (found, noted)
  }

  /// Says that there is nothing before `bucket`, but for what was noted since.
  func set(_ bucket: Int64) { found.store(bucket, ordering: .releasing) }
}

/// The earliest bucket of each cache that a batch writes to, until the batch is committed.
struct DueNotes {
  // Nearly every batch writes to one cache: without an array it allocates nothing.
  private var first: (due: NextDue, bucket: Int64)?
  private var others: [(due: NextDue, bucket: Int64)] = []

  /// Adds a row; nothing for an entry that has none.
  mutating func add(_ bucket: Int64?, _ due: NextDue) {
    guard let bucket else { return }
    guard let earliest = first else {
      first = (due, bucket)
      return
    }
    if earliest.due === due {
      first = (due, min(earliest.bucket, bucket))
    } else if let index = others.firstIndex(where: { $0.due === due }) {
      others[index].bucket = min(others[index].bucket, bucket)
    } else {
      others.append((due, bucket))
    }
  }

  /// Notes them.
  ///
  /// After the commit, and after one that failed, too: it may have taken effect.
  func note() {
    if let first { first.due.note(first.bucket) }
    for other in others { other.due.note(other.bucket) }
  }
}
