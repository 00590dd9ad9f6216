import LarderEngine

/// A write that is being prepared: its rows, and the notes that their commit makes.
struct PendingWrite: ~Copyable {
  var rows = WriteBatch()
  /// The buckets of the index rows that this write puts.
  var dueNotes = DueNotes()

  /// Forgets everything, and keeps the memory for the next rows.
  mutating func reset() {
    rows.reset()
    dueNotes = DueNotes()
  }
}
