import Foundation
import LarderBytes
import LarderEngine

/// One call of ``Store/migrate(_:)``.
///
/// It walks over the cache and gathers records to be rewritten into slices. A slice is one batch,
/// in which each record is put only if it is still the one that was read. The cursor takes a newer
/// state of the store from time to time, so no state is kept from being compacted for long.
struct Migration<Value: Sendable>: ~Copyable {
  private static var sliceRecords: Int { 256 }
  private static var sliceBytes: Int { 1 << 20 }

  private let store: Store
  private let core: CacheCore<Value>
  private let id: UInt64
  private let now: Date

  private(set) var report = MigrationReport()
  /// Up to where everything has been dealt with; nil when that is nowhere.
  ///
  /// It is written with the next slice, not with the one that got there: a record of that one may
  /// have been touched meanwhile, and is then dealt with in a batch of its own.
  private var mark: MigrationMark?
  private let markKey: [UInt8]
  /// Whether there may be a mark in the store.
  private var isMarked: Bool
  private var rows = WriteBatch()
  private var dueNotes = DueNotes()
  private var payload = ByteBuffer()

  init(of core: CacheCore<Value>, in store: Store) throws(StoreError) {
    self.store = store
    self.core = core
    id = core.id
    now = store.clock.now()
    let markKey = Metadata.migration(id)
    self.markKey = markKey
    let value: [UInt8]?
    do {
      value = try store.engine.get(markKey.span.bytes)
    } catch {
      throw StoreError(error, cache: core.name)
    }
    isMarked = value != nil
    if let value, let mark = MigrationMark(in: value, under: markKey), mark.isFor(core) {
      self.mark = mark
      report = mark.report
    }
  }

  mutating func run() throws(StoreError) {
    let prefix = KeySpace.records.prefix(ofCache: id)
    var range = EngineRange(prefix: prefix)
    // No key lies between one and the same with a zero byte behind it.
    if let mark { range.lower = prefix + mark.reached + [0] }
    let cursor = try store.cursor(over: range, in: core)
    var isComplete = true
    var passed = 0
    while try advance(cursor) {
      isComplete = isComplete && cursor.isComplete
      passed += 1
      cursor.withEntry { key, bytes in look(at: bytes, under: key) }
      if isSliceFull {
        try commit()
        // Cleared meanwhile: what is left under the old number is reclaimed.
        guard core.id == id else { return }
      } else if !rows.isEmpty || passed < Self.sliceRecords {
        continue
      }
      guard isComplete else { continue }
      passed = 0
      let key = cursor.withEntry { key, _ in
        key.extracting(prefix.count..<key.byteCount).withUnsafeBytes { Data($0) }
      }
      mark = MigrationMark(of: core, reached: key, report: report)
    }
    try finish()
  }

  private var isSliceFull: Bool {
    rows.requirements.count >= Self.sliceRecords || rows.bytes.count >= Self.sliceBytes
  }

  /// Moves to the next record; what waits to be written is not lost when there is none to be read.
  private mutating func advance(_ cursor: any EngineCursor) throws(StoreError) -> Bool {
    do {
      return try store.advance(cursor, in: core)
    } catch {
      try commit()
      throw error
    }
  }

  /// Adds a record to the slice if it is to be rewritten, and counts it if not.
  private mutating func look(at bytes: RawSpan, under recordKey: RawSpan) {
    let record: Record
    do throws(StoreError) {
      record = try core.record(bytes, under: recordKey)
    } catch .newerSchema, .incompatible {
      report.newer += 1
      return
    } catch {
      report.unreadable += 1
      return
    }
    guard !core.isCurrent(record) else { return report.current += 1 }
    guard core.lifetime.freshness(of: record.savedAt, at: now) != .expired else {
      return report.expired += 1
    }
    do throws(StoreError) {
      let bucket = try core.addMigrated(
        record, in: bytes, under: recordKey, id: id, encodingInto: &payload, to: &rows)
      dueNotes.add(bucket, core.nextDue)
    } catch {
      report.unreadable += 1
    }
  }

  /// Writes the slice, and deals with what somebody else has changed meanwhile.
  private mutating func commit() throws(StoreError) {
    if let mark, !rows.isEmpty { try put(mark) }
    while !rows.isEmpty {
      let count = rows.requirements.count
      defer { dueNotes.note() }
      let failed = try store.commit(&rows).failed
      report.migrated += count - failed.count
      let changed = failed.map { rows.requirements[$0].key }
      rows.reset()
      // What was saved is current now, and what was removed is gone; what was touched is as old in
      // its schema as before.
      for key in changed { try lookAgain(under: key) }
    }
  }

  private mutating func lookAgain(under recordKey: [UInt8]) throws(StoreError) {
    var buffer = ValueBuffer()
    guard try store.get(recordKey, in: core, into: &buffer) else { return }
    buffer.withBytes { bytes in look(at: bytes, under: recordKey.span.bytes) }
  }

  private mutating func put(_ mark: MigrationMark) throws(StoreError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    do {
      rows.putMetadata(Array(try encoder.encode(mark)), under: markKey)
    } catch {
      throw .encoding(key: core.name, underlying: error)
    }
    isMarked = true
  }

  /// Writes the last slice, and ends the mark when nothing is left to be done.
  private mutating func finish() throws(StoreError) {
    try commit()
    guard isMarked || report.migrated > 0 else { return }
    let markKey = markKey
    rows.remove(markKey.span.bytes)
    // Synced, and with it all that was written before: readers may go from here on.
    try store.commit(&rows, .powerLoss)
  }
}
