/// Generates commit sequences that increase strictly, even across a power loss.
///
/// Sequences are reserved in blocks. The end of the block is a row of the store itself. It is
/// written before the first commit with a sequence from the block, or in one batch with it, and
/// that write is synced. So every sequence that was ever seen is at or below the row, even if later
/// commits are lost. Opening continues after the row and skips the rest of the block. There are
/// enough blocks for a million opens a second for half a year.
package struct CommitSequence {
  /// The key of the last reserved sequence, whose value is 8 bytes, little-endian.
  ///
  /// A batch may not change it.
  package static let key: [UInt8] = [keySpace] + Array("sequence".utf8)
  /// The first byte of ``key``.
  static let keySpace: UInt8 = 0x00
  static let blockCount: UInt64 = 1 << 20

  private var last: UInt64 = 0
  private var lastReserved: UInt64 = 0

  /// Begins at 1, as in a new store.
  init() {}

  /// Continues after the last reserved sequence.
  ///
  /// - Parameter row: The value under ``key``; nil in a new store.
  /// - Throws: ``StoreError/corrupt(_:)`` if the value is not a sequence.
  package init(resumingAfter row: [UInt8]?) throws(StoreError) {
    guard let row else { return }
    guard let value = Self.number(in: row) else {
      throw .corrupt("the row of reserved commit sequences has \(row.count) bytes, not 8")
    }
    last = value
    lastReserved = value
  }

  /// The number in the value of ``key``; nil if it is damaged.
  package static func number(in row: [UInt8]) -> UInt64? {
    guard row.count == 8 else { return nil }
    return row.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Returns the next sequence.
  ///
  /// A `reservation` must be written in the same batch, synced, as the value of ``key``. Call
  /// ``didReserve(_:)`` once it is written; until then every call returns a reservation. A sequence
  /// whose write failed is not returned again: it may be in the log.
  mutating func next() -> (sequence: UInt64, reservation: UInt64?) {
    last += 1
    return (last, last > lastReserved ? last - 1 + CommitSequence.blockCount : nil)
  }

  /// Skips all sequences up to `sequence`.
  mutating func skip(through sequence: UInt64) {
    guard sequence > last else { return }
    (last, lastReserved) = (sequence, sequence)
  }

  mutating func didReserve(_ reservation: UInt64) {
    lastReserved = reservation
  }
}
