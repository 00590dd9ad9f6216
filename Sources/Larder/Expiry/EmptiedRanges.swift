import LarderEngine

/// What sweeps have deleted of a cache since it was last compacted.
///
/// Deleted rows stay in the files, and scans step over them, until they are compacted away.
struct EmptiedRanges {
  /// How many deletions are left where they are.
  ///
  /// A thousand cost a scan less than a millisecond. Sweeps in the background begin behind the
  /// rows that they have deleted, so that only the first one after an opening steps over them:
  /// there more are left, for each compaction writes what LevelDB has in memory into a table, too.
  static let tolerated = (asked: 1000, unasked: 100_000)
  /// How many bytes may be written anew for each byte that is freed.
  ///
  /// Who asks for a sweep gets scans as fast as before if a 16th of the records went. Sweeps in the
  /// background delete a few at a time, for ever: there a compaction writes at most what was freed.
  /// That empties a range of which nothing is left; among entries that live, LevelDB's own
  /// compactions give back the room as others write.
  private static let written = (asked: 16, unasked: 1)

  private var rows = 0
  private var rowRange: EngineRange?
  private var records = 0
  private var recordBytes = 0
  private var recordRange: EngineRange?

  /// Adds rows of the index, all of those from `start` to `last`.
  mutating func addRows(_ count: Int, from start: [UInt8], to last: [UInt8]) {
    rows += count
    Self.extend(&rowRange, from: start, to: last)
  }

  mutating func addRecord(_ key: [UInt8], bytes: Int) {
    records += 1
    recordBytes += bytes
    Self.extend(&recordRange, from: key, to: key)
  }

  /// Compacts what is worth it.
  ///
  /// The index is emptied from one end to the other. Records may lie far apart, with others between
  /// them that would be written anew.
  mutating func compact(in engine: any StorageEngine, asked: Bool) throws(EngineError) {
    let tolerated = asked ? Self.tolerated.asked : Self.tolerated.unasked
    if rows >= tolerated, let range = rowRange {
      try engine.compact(range)
      rows = 0
      rowRange = nil
    }
    if records >= tolerated, let range = recordRange {
      let written = try engine.approximateBytes(in: range)
      let forEachFreed = asked ? Self.written.asked : Self.written.unasked
      guard written <= UInt64(recordBytes) * UInt64(forEachFreed) else { return }
      try engine.compact(range)
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
