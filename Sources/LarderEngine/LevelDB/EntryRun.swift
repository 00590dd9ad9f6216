import CLarderLevelDB

/// Entries that a cursor has read ahead, in memory of its iterator.
///
/// A step within a run costs no call into LevelDB, and what it stands on outlives the database. It
/// holds nothing but pointers, so that a step costs no reference count either: whoever has the run
/// has the iterator.
struct EntryRun {
  /// Runs are for small entries: one that does not fit into a run is lent as it is.
  static let mostEntries = 64
  static let mostBytes = 16 << 10

  private var rest: UnsafeRawBufferPointer
  /// The entry that is stood on, until the iterator copies others.
  private(set) var key = UnsafeRawBufferPointer(start: nil, count: 0)
  private(set) var value = UnsafeRawBufferPointer(start: nil, count: 0)

  /// Stands before the first of the entries that `clarder_cursor_copy` has left in `bytes`.
  init(over bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// Moves to the next entry; false at the end, and then it stays on the last one.
  mutating func advance() -> Bool {
    guard let start = rest.baseAddress, !rest.isEmpty else { return false }
    let keyCount = Int(start.loadUnaligned(as: UInt32.self))
    let valueCount = Int(start.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
    key = UnsafeRawBufferPointer(start: start + 8, count: keyCount)
    value = UnsafeRawBufferPointer(start: start + 8 + keyCount, count: valueCount)
    let count = 8 + keyCount + valueCount
    rest = UnsafeRawBufferPointer(start: start + count, count: rest.count - count)
    return true
  }
}
