/// The range of a cache that sweeps have emptied since it was last compacted.
///
/// Deleted rows stay in the files, and scans step over them, until a compaction removes them. Where
/// most of a range was deleted, nothing may ever be written that makes LevelDB compact it. So a
/// sweep does that, if no more bytes are rewritten than are freed. Elsewhere a compaction would
/// take longer than the rest of the sweep, and is left to LevelDB and ``Store/compact(progress:)``.
struct EmptiedRange {
  /// The number of deleted rows from which on a range is compacted.
  ///
  /// A thousand deleted rows cost a scan less than a millisecond. Sweeps in the background leave
  /// more of them, because each compaction also writes LevelDB's memory into a table.
  static let tolerated = (asked: 1000, unasked: 100_000)

  private var records = 0
  private var bytes = 0
  private var range: EngineRange?

  mutating func addRecord(_ key: [UInt8], bytes: Int) {
    records += 1
    self.bytes += bytes
    // No key lies between one and the same with a zero byte behind it.
    guard let old = range, let upper = old.upper else {
      range = EngineRange(from: key, upTo: key + [0])
      return
    }
    if key.lexicographicallyPrecedes(old.lower) { range?.lower = key }
    if !key.lexicographicallyPrecedes(upper) { range?.upper = key + [0] }
  }

  /// Compacts the range if that is worth it.
  ///
  /// Records may lie far apart, with live records between them that a compaction would rewrite. A
  /// compaction that finds the disk full is left to the next sweep: the entries are deleted without
  /// it.
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
    guard records >= tolerated, let range else { return }
    guard try context.engine.approximateBytes(in: range) <= UInt64(bytes) else { return }
    try context.engine.compact(range)
    self = EmptiedRange()
  }
}
