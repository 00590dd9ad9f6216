import Foundation

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
  private var payload = ByteBuffer()

  /// `id` is the id of the cache, whose records are migrated.
  init(of core: CacheCore<Value>, id: UInt64) throws(StoreError) {
    self.core = core
    context = core.context
    self.id = id
    now = context.clock.now()
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
    var pass = try RecordPass(
      over: range, ofCache: core.name, readsPayloads: true, freesRoom: false, in: context)
    var isComplete = true
    var passed = 0
    while try pass.next() {
      isComplete = isComplete && pass.cursor.isComplete
      passed += 1
      try pass.visit { key, bytes, _, changes throws(StoreError) in
        try migrate(bytes, under: key, &changes)
      }
      guard pass.isFull || !pass.hasChanges && passed >= Self.recordedDistance else { continue }
      let key = pass.cursor.withEntry { key, _ in
        key.extracting(prefix.count...).withUnsafeBytes { Data($0) }
      }
      try commit(&pass)
      // The cache was cleared or dropped meanwhile; records under the old id are reclaimed.
      guard core.id == id else { return }
      guard isComplete else { continue }
      passed = 0
      mark = MigrationMark(of: core, reached: key, report: report)
    }
    try commit(&pass)
    if let damage = pass.damage { throw damage }
    try finish()
  }

  /// Adds a record to the changes if it is to be rewritten, and counts it otherwise.
  private mutating func migrate(
    _ bytes: RawSpan, under key: RawSpan, _ changes: inout RecordChanges
  ) throws(StoreError) {
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
    let size = recordKey.bytes.count + bytes.byteCount
    try changes.add(
      RecordChanges.Change(key: recordKey.bytes, bytes: size, cause: nil),
      if: .unchanged(since: record.sequence, in: Record.stamp)
    ) { write, requirement throws(StoreError) in
      try core.addReencoded(
        record, in: bytes, under: recordKey, payload, to: &write, if: requirement)
    }
  }

  /// Commits the changes, and migrates the records that were written since they were read.
  ///
  /// A record that was saved since is current, one that was removed is gone, and one that was
  /// touched still has its old schema version. On a full disk the cursor is renewed.
  private mutating func commit(_ pass: inout RecordPass) throws(StoreError) {
    if let mark, pass.hasChanges { try put(mark, with: &pass) }
    while pass.hasChanges {
      let changed = try commitOnce(&pass)
      try pass.visit(changed) { key, bytes, _, changes throws(StoreError) in
        try migrate(bytes, under: key, &changes)
      }
    }
  }

  /// Commits the changes once; on a full disk, repeats that as long as old payloads give back room.
  private mutating func commitOnce(
    _ pass: inout RecordPass
  ) throws(StoreError) -> [RecordChanges.Change] {
    while true {
      let deleted = context.engine.segmentTotals.deletedBytes
      do throws(StoreError) {
        return try pass.commitOnce { _ in report.migrated += 1 }
      } catch .diskFull {
        // A collection that is under way may have begun before the last slices.
        context.engine.waitForBackgroundWork()
        // The state that the cursor reads needs the old payloads.
        try pass.cursor.renew()
        try context.engine.collectSegments()
        guard context.engine.segmentTotals.deletedBytes > deleted else { throw .diskFull }
      }
    }
  }

  private mutating func put(
    _ mark: MigrationMark, with pass: inout RecordPass
  ) throws(StoreError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let value: [UInt8]
    do {
      value = Array(try encoder.encode(mark))
    } catch {
      throw .encoding(key: core.name, underlying: error)
    }
    pass.putMetadata(value, under: markKey)
    isMarked = true
  }

  /// Removes the mark.
  private func finish() throws(StoreError) {
    guard isMarked || report.migrated > 0 else { return }
    var rows = WriteBatch()
    rows.remove(markKey.span.bytes)
    // Synced, and with it everything before: the program may drop its readers from here on.
    try context.writeMetadata(&rows, synced: true, cache: core.name)
  }
}
