import Foundation
import LarderBytes

/// One call of ``Store/migrate(_:)``.
///
/// It scans the cache and rewrites, in slices, the records of older schema versions and other
/// coders. The cursor moves on to newer states of the store from time to time, so it does not keep
/// old files for long.
struct Migration<Value: Sendable>: ~Copyable {
  /// The number of records after which the position is recorded, even if none is rewritten.
  private static var recordedDistance: Int { 256 }

  private let context: StoreContext
  private let core: CacheCore<Value>
  private let id: UInt64
  private let now: Date

  private(set) var report = MigrationReport()
  /// The last key up to which every record is migrated; nil if none.
  ///
  /// It is written with the next slice: a record of the slice that reached it may have been changed
  /// meanwhile, and is migrated in a batch of its own.
  private var mark: MigrationMark?
  private let markKey: [UInt8]
  /// Whether there may be a mark in the store.
  private var isMarked: Bool
  private var slice: ConditionalSlice<[UInt8]>
  private var payload = ByteBuffer()

  /// `id` is the id of the cache, whose records are migrated.
  init(of core: CacheCore<Value>, id: UInt64) throws(StoreError) {
    self.core = core
    context = core.context
    self.id = id
    now = context.clock.now()
    slice = ConditionalSlice(in: context, freesRoom: false)
    let markKey = Metadata.migration(id)
    self.markKey = markKey
    let value = try context.get(markKey, cache: core.name)
    isMarked = value != nil
    if let value, let mark = MigrationMark(in: value, under: markKey), mark.isFor(core) {
      self.mark = mark
      report = mark.report
    }
  }

  mutating func run() throws(StoreError) {
    let prefix = KeySpace.records.prefix(ofCache: id)
    var range = EngineRange(prefix: prefix)
    // The next possible key is the same one with a zero byte appended.
    if let mark { range.lower = prefix + mark.reached + [0] }
    let cursor = try context.cursor(over: range, cache: core.name)
    var isComplete = true
    var passed = 0
    while try advance(cursor) {
      isComplete = isComplete && cursor.isComplete
      passed += 1
      cursor.withEntry { key, bytes in migrate(bytes, under: key, readBy: .cursor) }
      guard slice.isFull || slice.isEmpty && passed >= Self.recordedDistance else { continue }
      let key = cursor.withEntry { key, _ in
        key.extracting(prefix.count...).withUnsafeBytes { Data($0) }
      }
      try commit(cursor)
      // The cache was cleared or dropped meanwhile; records under the old id are reclaimed.
      guard core.id == id else { return }
      guard isComplete else { continue }
      passed = 0
      mark = MigrationMark(of: core, reached: key, report: report)
    }
    try finish(cursor)
  }

  /// Moves to the next record; if that fails, commits the slice first.
  private mutating func advance(_ cursor: StoreCursor) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try cursor.next()
    } catch {
      try commit(cursor)
      throw error
    }
  }

  /// Adds a record to the slice if it is to be rewritten, and counts it otherwise.
  private mutating func migrate(
    _ bytes: RawSpan, under key: RawSpan, readBy source: ConditionalSlice<[UInt8]>.Source
  ) {
    let record: Record
    do throws(StoreError) {
      record = try core.record(bytes, under: key)
    } catch .newerSchema, .incompatible {
      report.newer += 1
      return
    } catch {
      report.unreadable += 1
      return
    }
    guard !core.isCurrent(record) else { return report.current += 1 }
    guard core.lifetime.freshness(of: record, at: now) != .expired else {
      return report.expired += 1
    }
    do throws(StoreError) {
      try core.reencode(record, in: bytes, under: key, into: &payload)
    } catch {
      report.unreadable += 1
      return
    }
    guard let recordKey = RecordKey(key) else { return }
    slice.add(
      recordKey.bytes, key: recordKey.bytes,
      if: .unchanged(since: record.sequence, in: Record.stamp),
      readBy: source
    ) { write, requirement in
      core.addReencoded(record, in: bytes, under: recordKey, payload, to: &write, if: requirement)
    }
  }

  /// Commits the slice, and migrates the records that have changed meanwhile.
  ///
  /// A record that was saved since is current, one that was removed is gone, and one that was
  /// touched still has its old schema version. On a full disk the cursor is renewed.
  private mutating func commit(_ cursor: StoreCursor) throws(StoreError) {
    if let mark, !slice.isEmpty { try put(mark) }
    while !slice.isEmpty {
      let (applied, changed) = try commitSlice(cursor)
      report.migrated += applied.count
      var buffer = ValueBuffer()
      for key in changed where try slice.get(key, into: &buffer) {
        buffer.withBytes { migrate($0, under: key.span.bytes, readBy: .lookup) }
      }
    }
  }

  /// Commits the slice once; on a full disk, repeats that as long as old payloads give back room.
  private mutating func commitSlice(
    _ cursor: StoreCursor
  ) throws(StoreError) -> (applied: [[UInt8]], changed: [[UInt8]]) {
    while true {
      let deleted = context.engine.segmentTotals.deletedBytes
      do throws(StoreError) {
        return try slice.commit()
      } catch .diskFull {
        // A collection that is under way may have begun before the last slices.
        context.engine.waitForBackgroundWork()
        // The state that the cursor reads needs the old payloads.
        try cursor.renew()
        try context.engine.collectSegments()
        guard context.engine.segmentTotals.deletedBytes > deleted else { throw .diskFull }
      }
    }
  }

  private mutating func put(_ mark: MigrationMark) throws(StoreError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let value: [UInt8]
    do {
      value = Array(try encoder.encode(mark))
    } catch {
      throw .encoding(key: core.name, underlying: error)
    }
    slice.putMetadata(value, under: markKey)
    isMarked = true
  }

  /// Writes the last slice, and removes the mark.
  private mutating func finish(_ cursor: StoreCursor) throws(StoreError) {
    try commit(cursor)
    guard isMarked || report.migrated > 0 else { return }
    var rows = WriteBatch()
    rows.remove(markKey.span.bytes)
    // Synced, and with it everything before: the program may drop its readers from here on.
    try context.writeMetadata(&rows, synced: true, cache: core.name)
  }
}
