/// The settings of a ``LevelDBEngine``, which are fixed while it is open.
package struct LevelDBOptions: Sendable {
  // MARK: - Behaviour

  /// Whether a missing or empty directory becomes a store.
  ///
  /// The default is true.
  ///
  /// When false, opening one throws and changes nothing.
  package var createIfMissing = true

  /// The file for LevelDB's log of its own work, for debugging.
  ///
  /// The default is nil: no file.
  ///
  /// The file is overwritten. Keep it out of the store's directory.
  package var infoLogPath: String?

  /// Why writes are refused; nil if they are accepted.
  ///
  /// The default is nil. Otherwise a write throws ``StoreError/readOnly(cause:)``, and opening
  /// does not read what only writes need: a store whose own bookkeeping is damaged can still be
  /// opened.
  package var readOnlyCause: String?

  /// The files of the store.
  ///
  /// The default is the system's.
  package var files: any StoreFiles = SystemFiles()

  /// Where the store's values are stamped.
  ///
  /// The default is nil: the stamps are not known, and ``Recovery/lostCommits`` is nil.
  package var stamp: Stamp?

  /// The values that may be kept in segments.
  ///
  /// The default is nil: no value is separated, and rows of separated values are not recognised.
  package var separation: ValueSeparation?

  /// Bytes of a segment before the next one is begun.
  ///
  /// The default is 32 MiB; 4 KiB to 1 GiB.
  package var segmentBytes = SegmentWriter.segmentBytes

  /// Whether a thread syncs segments while they are appended to.
  ///
  /// The default is true. When false, the writers sync them.
  package var syncsInBackground = true

  /// Whether a thread collects segments when that is due.
  ///
  /// The default is true. When false, only ``LevelDBEngine/collectSegments()`` collects them.
  package var collectsInBackground = true

  // MARK: - Performance

  /// Bits of Bloom filter for each key.
  ///
  /// The default is 10; the range is 0 (no filter) to 64.
  ///
  /// With 10, one lookup of an absent key in a hundred reads the disk. More bits take space in
  /// every file and in memory. Leave this alone unless nearly all lookups find their key.
  package var filterBitsPerKey = 10

  /// Bytes of entries in a block, the unit of reading.
  ///
  /// The default is 4 KiB; 1 KiB to 4 MiB.
  ///
  /// Larger blocks compress better and scan faster, but each point read reads a whole block.
  package var blockBytes = 4 << 10

  /// Bytes collected in memory before they become a file.
  ///
  /// The default is 4 MiB; 64 KiB to 1 GiB.
  ///
  /// Larger buffers make bulk loads faster, and opening after a crash slower. Up to two buffers
  /// exist at once.
  package var writeBufferBytes = 4 << 20

  /// Bytes of uncompressed blocks kept in memory.
  ///
  /// The default is 8 MiB; 0 keeps none.
  package var blockCacheBytes = 8 << 20

  /// Bytes of a file before the next one is begun.
  ///
  /// The default is 2 MiB; 1 MiB to 1 GiB.
  ///
  /// Larger files are fewer, and each compaction takes longer.
  package var maxFileBytes = 2 << 20

  /// Whether blocks are compressed with Snappy.
  ///
  /// The default is true.
  ///
  /// Turn it off when values are compressed already. Existing blocks stay readable either way.
  package var compression = true

  /// Whether opening appends to the last log instead of writing it into a table.
  ///
  /// The default is false.
  ///
  /// It makes opening after a crash faster. LevelDB calls it experimental; leave it alone.
  package var reusesLogs = false

  /// The largest number of open files.
  ///
  /// The default is 1,000; the range is 74 to 50,000.
  ///
  /// A store much larger than this number times ``maxFileBytes`` reopens files all the time.
  package var maxOpenFiles = 1000

  /// The number of steps after which a cursor continues in a newer state.
  ///
  /// The default is 100,000; at least 1.
  ///
  /// The state of a cursor keeps deleted files on the disk and freed memory in use.
  package var cursorSliceEntries = 100_000

  package init() {}

  /// Throws ``StoreError/invalidArgument(_:)`` if a setting is out of range.
  package func checkRanges() throws(StoreError) {
    try LevelDBOptions.check(filterBitsPerKey, "filterBitsPerKey", in: 0...64)
    try LevelDBOptions.check(blockBytes, "blockBytes", in: (1 << 10)...(4 << 20))
    try LevelDBOptions.check(writeBufferBytes, "writeBufferBytes", in: (64 << 10)...(1 << 30))
    try LevelDBOptions.check(blockCacheBytes, "blockCacheBytes", in: 0...Int.max)
    try LevelDBOptions.check(maxFileBytes, "maxFileBytes", in: (1 << 20)...(1 << 30))
    try LevelDBOptions.check(segmentBytes, "segmentBytes", in: (4 << 10)...(1 << 30))
    try LevelDBOptions.check(maxOpenFiles, "maxOpenFiles", in: 74...50_000)
    try LevelDBOptions.check(cursorSliceEntries, "cursorSliceEntries", in: 1...Int.max)
  }

  private static func check(
    _ value: Int, _ name: String, in range: ClosedRange<Int>
  ) throws(StoreError) {
    guard range.contains(value) else {
      throw .invalidArgument(
        "\(name) is \(value), outside \(range.lowerBound) to \(range.upperBound)")
    }
  }
}
