import CLarder

/// Entries that a cursor has read ahead, in memory of its iterator.
///
/// A step within a run needs no call into LevelDB, and its entries outlive the database. A run
/// holds only pointers, so that a step needs no reference counting: its cursor has the iterator.
struct EntryRun {
  /// Runs are for small entries: an entry that does not fit is read by itself.
  static let mostEntries = 64
  static let mostBytes = 16 << 10

  private var rest: UnsafeRawBufferPointer
  /// The current entry, valid until the iterator copies others.
  private(set) var key = UnsafeRawBufferPointer(start: nil, count: 0)
  private(set) var value = UnsafeRawBufferPointer(start: nil, count: 0)

  /// Begins before the first of the entries that `clarder_cursor_copy` has copied to `bytes`.
  init(over bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// Moves to the next entry; at the end it returns false and stays on the last one.
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
