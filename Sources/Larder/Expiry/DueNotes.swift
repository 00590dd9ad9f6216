/// The earliest bucket of each cache that a write puts index rows into.
///
/// They are noted when the write is committed.
struct DueNotes {
  // Nearly every write is to one cache: without an array it allocates nothing.
  private var first: (due: NextDue, bucket: Int64)?
  private var others: [(due: NextDue, bucket: Int64)] = []

  mutating func add(_ bucket: Int64, _ due: NextDue) {
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

  func note() {
    if let first { first.due.note(first.bucket) }
    for other in others { other.due.note(other.bucket) }
  }
}
