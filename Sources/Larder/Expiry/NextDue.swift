import Synchronization

/// The earliest bucket of a cache's expiry index that may hold rows.
///
/// It is a lower bound, kept in memory only. With it a sweep that has nothing to do ends at once,
/// and one that has begins after the rows that the last one deleted. When a store is opened, every
/// bucket may hold rows.
///
/// Saves and sweeps take no common lock; the order of their steps keeps the bound right. A save
/// notes its bucket after its row is committed. A sweep takes the notes before it makes its cursor.
/// So a row that the cursor does not show was committed after that, and so was its note.
final class NextDue: Sendable {
  /// The bound that the last sweep found.
  private let found = Atomic<Int64>(.min)
  /// The earliest bucket that was written to since the last sweep took the notes.
  private let noted = Atomic<Int64>(.max)

  /// Whether there may be rows in `bucket` or an earlier one.
  func isDue(at bucket: Int64) -> Bool {
    noted.load(ordering: .acquiring) <= bucket || found.load(ordering: .acquiring) <= bucket
  }

  /// Notes a row that was committed.
  func note(_ bucket: Int64) {
    guard bucket < noted.load(ordering: .acquiring) else { return }
    noted.min(bucket, ordering: .acquiringAndReleasing)
  }

  /// Takes the notes; returns them and the bound that the last sweep found.
  ///
  /// For one sweep at a time.
  func take() -> (found: Int64, noted: Int64) {
    let noted = noted.exchange(.max, ordering: .acquiringAndReleasing)
    let found = found.load(ordering: .acquiring)
    // Holds until the sweep sets its own bound, which it may never do.
    self.found.store(min(found, noted), ordering: .releasing)
    return (found, noted)
  }

  /// Sets the bound: there is nothing before `bucket` but rows that were noted since.
  func set(_ bucket: Int64) { found.store(bucket, ordering: .releasing) }
}

/// The earliest bucket of each cache that a write puts index rows into.
///
/// They are noted when the write is committed.
struct DueNotes: ~Copyable {
  // Nearly every write is to one cache: without an array it allocates nothing.
  private var due: NextDue?
  private var bucket = Int64.max
  private var others: [(due: NextDue, bucket: Int64)]?

  mutating func add(_ bucket: Int64, _ due: NextDue) {
    if self.due == nil { self.due = due }
    guard self.due !== due else {
      self.bucket = min(self.bucket, bucket)
      return
    }
    var notes = others.take() ?? []
    if let index = notes.firstIndex(where: { $0.due === due }) {
      notes[index].bucket = min(notes[index].bucket, bucket)
    } else {
      notes.append((due, bucket))
    }
    others = notes
  }

  func note() {
    due?.note(bucket)
    guard let others else { return }
    for other in others { other.due.note(other.bucket) }
  }
}
