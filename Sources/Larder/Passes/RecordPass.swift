/// A pass over the records of a range, each of which is kept, removed or rewritten.
///
/// The owner of a pass moves it from record to record, decides about each, and commits the changes
/// whenever there are enough of them for a batch. A record that was written after it was read keeps
/// its new state, and is visited again. A damaged block of a file ends the pass.
struct RecordPass: ~Copyable {
  /// Decides about a record of `count` bytes, and adds what changes to `changes`.
  ///
  /// `bytes` lacks a payload in a segment if the pass does not read payloads.
  typealias Visit = (
    _ key: RawSpan, _ bytes: RawSpan, _ count: Int, _ changes: inout RecordChanges
  ) throws(StoreError) -> Void

  let cursor: StoreCursor
  private let readsPayloads: Bool
  private var changes: RecordChanges
  private var buffer = ValueBuffer()
  /// The error of the damaged block that has ended the pass.
  private(set) var damage: StoreError?

  init(
    over range: EngineRange, ofCache name: String, readsPayloads: Bool, freesRoom: Bool,
    in context: StoreContext
  ) throws(StoreError) {
    self.readsPayloads = readsPayloads
    changes = RecordChanges(in: context, freesRoom: freesRoom)
    cursor = try context.cursor(over: range, cache: name, readsPayloads: readsPayloads)
  }

  /// Whether there are changes to commit.
  var hasChanges: Bool { !changes.isEmpty }

  /// Whether there are enough changes for a batch.
  var isFull: Bool { changes.isFull }

  /// Moves to the next record; false at the end of the range, and at a damaged block.
  mutating func next() throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try cursor.next()
    } catch .corrupt(let cache, let key, let file) {
      damage = .corrupt(cache: cache, key: key, file: file)
      return false
    }
  }

  /// Visits the record that the pass has moved to.
  mutating func visit(_ visit: Visit) throws(StoreError) {
    changes.hasReadByCursor = true
    let count = cursor.valueCount
    try cursor.withEntry { key, bytes throws(StoreError) in
      try visit(key, bytes, count, &changes)
    }
  }

  /// Commits the changes, and visits records that were written since they were read again.
  mutating func commit(
    visiting visit: Visit, didApply: (RecordChanges.Change) -> Void
  ) throws(StoreError) {
    while hasChanges { try self.visit(try commitOnce(didApply), visit) }
  }

  /// Commits the changes; returns those that had no effect, because their records were written
  /// since they were read.
  mutating func commitOnce(
    _ didApply: (RecordChanges.Change) -> Void
  ) throws(StoreError) -> [RecordChanges.Change] {
    let (applied, changed) = try changes.commit()
    for change in applied { didApply(change) }
    return changed
  }

  /// Visits records again that were written since they were read.
  mutating func visit(_ changed: [RecordChanges.Change], _ visit: Visit) throws(StoreError) {
    for change in changed {
      let key = change.key
      let count =
        try readsPayloads
        ? changes.get(key, into: &buffer) : changes.getHead(key, into: &buffer)
      guard let count else { continue }
      try buffer.withBytes { bytes throws(StoreError) in
        try visit(key.span.bytes, bytes, count, &changes)
      }
    }
  }

  /// Adds a row of the store's own to the next batch.
  mutating func putMetadata(_ body: [UInt8], under key: [UInt8]) {
    changes.putMetadata(body, under: key)
  }
}
