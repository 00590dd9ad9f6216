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
