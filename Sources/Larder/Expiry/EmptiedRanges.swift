/// The ranges of a cache that sweeps have emptied since they were last compacted.
///
/// Deleted rows stay in the files, and scans step over them, until a compaction removes them.
struct EmptiedRanges {
  /// The number of deleted rows from which on a range is compacted.
  ///
  /// A thousand deleted rows cost a scan less than a millisecond. Sweeps in the background begin
  /// after the rows that they have deleted, so only the first one after an opening steps over them.
  /// They leave more rows, because each compaction also writes LevelDB's memory into a table.
  static let tolerated = (asked: 1000, unasked: 100_000)
  /// The bytes that a compaction may rewrite for each byte that it frees.
  ///
  /// After a sweep that was asked for, scans are as fast as before if at least a 16th of the
  /// records was deleted. Sweeps in the background delete a few records at a time, again and again:
  /// their compactions rewrite at most as much as they free. That empties ranges in which nothing
  /// is left. Elsewhere LevelDB's own compactions give back the room.
  private static let written = (asked: 16, unasked: 1)

  private var rows = 0
  private var rowRange: EngineRange?
  private var records = 0
  private var recordBytes = 0
  private var recordRange: EngineRange?

  /// Adds `count` index rows: all of those from `start` to `last`.
  mutating func addRows(_ count: Int, from start: [UInt8], to last: [UInt8]) {
    rows += count
    Self.extend(&rowRange, from: start, to: last)
  }

  mutating func addRecord(_ key: [UInt8], bytes: Int) {
    records += 1
    recordBytes += bytes
    Self.extend(&recordRange, from: key, to: key)
  }

  /// Compacts the ranges where it is worth it.
  ///
  /// The index is emptied from its beginning on. Records may lie far apart, with live records
  /// between them that a compaction would rewrite. A compaction that finds the disk full is left to
  /// the next sweep: the entries are deleted without it.
  mutating func compact(in context: StoreContext, asked: Bool) throws(StoreError) {
    do throws(StoreError) {
      try compactIfWorthIt(in: context, asked: asked)
    } catch .diskFull {
      return
    }
  }

  private mutating func compactIfWorthIt(
    in context: StoreContext, asked: Bool
  ) throws(StoreError) {
    let tolerated = asked ? Self.tolerated.asked : Self.tolerated.unasked
    if rows >= tolerated, let range = rowRange {
      try context.engine.compact(range)
      rows = 0
      rowRange = nil
    }
    if records >= tolerated, let range = recordRange {
      let written = try context.engine.approximateBytes(in: range)
      let forEachFreed = asked ? Self.written.asked : Self.written.unasked
      guard written <= UInt64(recordBytes) * UInt64(forEachFreed) else { return }
      try context.engine.compact(range)
      records = 0
      recordBytes = 0
      recordRange = nil
    }
  }

  private static func extend(_ range: inout EngineRange?, from first: [UInt8], to last: [UInt8]) {
    // No key lies between one and the same with a zero byte behind it.
    guard let old = range, let upper = old.upper else {
      range = EngineRange(from: first, upTo: last + [0])
      return
    }
    if first.lexicographicallyPrecedes(old.lower) { range?.lower = first }
    if !last.lexicographicallyPrecedes(upper) { range?.upper = last + [0] }
  }
}
