/// Keys of due index rows, as many as a sweep keeps in memory at once.
///
/// The index orders them by date. Sorted by the user's key, the rows of one record are adjacent,
/// and records are read in the order in which they lie on disk: each block of a table once.
struct DueRows {
  /// The bytes of keys at which the list is full.
  static let sufficientBytes = 4 << 20

  private var bytes: [UInt8] = []
  private var rows: [Range<Int>] = []
  /// The number of bytes before the user's key.
  private let userKeyOffset: Int

  init(cacheID: UInt64) { userKeyOffset = IndexRow.userKeyOffset(cacheID: cacheID) }

  var count: Int { rows.count }
  var isFull: Bool { bytes.count >= Self.sufficientBytes }

  /// Adds the key of a row, which must have a bucket.
  mutating func append(_ key: RawSpan) {
    precondition(key.byteCount >= userKeyOffset, "a row without a bucket")
    let start = bytes.count
    key.withUnsafeBytes { bytes.append(contentsOf: $0) }
    rows.append(start..<bytes.count)
  }

  /// Removes all rows, and keeps the memory for the next ones.
  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    rows.removeAll(keepingCapacity: true)
  }

  mutating func sortByUserKey() {
    bytes.withUnsafeBytes { bytes in
      rows.sort { [userKeyOffset] in
        isOrdered(
          UnsafeRawBufferPointer(rebasing: bytes[$0].dropFirst(userKeyOffset)),
          before: UnsafeRawBufferPointer(rebasing: bytes[$1].dropFirst(userKeyOffset)))
      }
    }
  }

  /// The key of a row.
  func key(of row: Int) -> ArraySlice<UInt8> { bytes[rows[row]] }

  /// The user's key in the key of a row.
  func userKey(of row: Int) -> ArraySlice<UInt8> { bytes[rows[row]].dropFirst(userKeyOffset) }

  /// The rows from `first` on with the same user's key, in a sorted list.
  func rowsOfRecord(from first: Int) -> Range<Int> {
    let key = userKey(of: first)
    var end = first + 1
    while end < count, userKey(of: end).elementsEqual(key) { end += 1 }
    return first..<end
  }
}
