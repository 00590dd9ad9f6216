import LarderEngine

/// A write that is being prepared: its rows, and what the store does when they are committed.
struct PendingWrite: ~Copyable {
  var rows = WriteBatch()
  /// The buckets of the index rows that this write puts.
  var dueNotes = DueNotes()
  /// The changes that are counted if the commit succeeds.
  var changes = ChangeNotes()

  /// Forgets everything, and keeps the memory for the next rows.
  mutating func reset() {
    rows.reset()
    dueNotes = DueNotes()
    changes = ChangeNotes()
  }
}
