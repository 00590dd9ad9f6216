/// Gives out commit sequences: never one twice and never a lower one, after power loss either.
///
/// Sequences are reserved in blocks. The end of the block is a row of the store itself, written
/// before, or in one batch with, the first commit that takes a sequence from it, and that write is
/// synced. Whatever is lost later, every sequence that was ever seen is below the row. Opening goes
/// on behind it and so leaves out the rest of the block, which costs nothing: there are blocks for
/// a million opens a second for half a year.
package struct CommitSequence {
  /// Where the last reserved sequence is kept, as 8 bytes, little-endian.
  ///
  /// No batch may change it.
  package static let key: [UInt8] = [keySpace] + Array("sequence".utf8)
  /// The first byte of ``key``.
  static let keySpace: UInt8 = 0x00
  static let blockCount: UInt64 = 1 << 20

  private var last: UInt64 = 0
  private var lastReserved: UInt64 = 0

  /// Begins at 1, for a new store.
  init() {}

  /// Goes on behind what was reserved before.
  ///
  /// - Parameter row: What is stored under ``key``; nil in a new store.
  /// - Throws: ``EngineError/corrupt(_:)`` when that is not a sequence.
  package init(resumingAfter row: [UInt8]?) throws(EngineError) {
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

  /// Takes the next sequence.
  ///
  /// A `reservation` must go into the same batch, synced, as the value of ``key``. Once it is
  /// written, ``didReserve(_:)`` says so; until then every call asks for it again. A sequence whose
  /// write failed is not given out again: nobody knows whether it is in the log.
  mutating func next() -> (sequence: UInt64, reservation: UInt64?) {
    last += 1
    return (last, last > lastReserved ? last - 1 + CommitSequence.blockCount : nil)
  }

  /// Leaves out all sequences up to `sequence`.
  mutating func skip(through sequence: UInt64) {
    guard sequence > last else { return }
    (last, lastReserved) = (sequence, sequence)
  }

  mutating func didReserve(_ reservation: UInt64) {
    lastReserved = reservation
  }
}
