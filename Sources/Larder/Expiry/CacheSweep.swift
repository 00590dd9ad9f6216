import Foundation
import LarderBytes
import LarderEngine

/// What sweeps of a cache leave for the next one.
struct SweepPlace {
  /// The number of the cache that it is about.
  let id: UInt64
  /// Behind the last row that was dealt with, when the sweep ended before the last row that was
  /// due: its bucket, and a key of the index.
  var reached: (bucket: Int64, key: [UInt8])?
  var emptied = EmptiedRanges()

  init(id: UInt64) { self.id = id }
}

/// One walk over the rows of a cache's expiry index that are due.
///
/// It gathers rows, sorts them by the keys of their records, and deletes them in slices. A slice is
/// one batch. A row goes together with its record, under one condition: that the record is still
/// the one that was read. No condition on the row is needed. Whoever writes a row writes its record
/// in the same batch, with a new commit sequence; so while the record is the same one, nobody has
/// written the row again, and if it is not, both stay and are looked at again. A row without a
/// record goes on condition that there is none yet.
struct CacheSweep: ~Copyable {
  private static var sliceRows: Int { 256 }
  private static var sliceKeyBytes: Int { 1 << 20 }

  private let engine: any StorageEngine
  private let observations: Observations
  private let counts: CacheCounts
  private let cache: Registration
  private let due: NextDue
  private let now: Date
  /// The last bucket that is due.
  private let last: Int64
  private let recordPrefix: [UInt8]
  private let indexPrefix: [UInt8]

  private(set) var place: SweepPlace
  private(set) var deleted = 0

  private var dueRows: DueRows
  private var rows = WriteBatch()
  /// What was found under the key of each condition in ``rows``.
  private var findings: [Finding] = []
  private var moved = DueNotes()
  private var buffer = ValueBuffer()

  /// Some rows of one record, and what becomes of it.
  private struct Finding {
    let rows: Range<Int>
    let recordKey: [UInt8]
    /// How long the record is that goes with them; nil when none does.
    let deletedBytes: Int?
  }

  init(
    of cache: Registration, in engine: any StorageEngine, telling observations: Observations,
    counting counts: CacheCounts, at now: Date, last: Int64, from place: SweepPlace?, due: NextDue
  ) {
    self.engine = engine
    self.observations = observations
    self.counts = counts
    self.cache = cache
    self.due = due
    self.now = now
    self.last = last
    self.place = place ?? SweepPlace(id: cache.id)
    recordPrefix = KeySpace.records.prefix(ofCache: cache.id)
    indexPrefix = KeySpace.expiry.prefix(ofCache: cache.id)
    dueRows = DueRows(userKeyOffset: indexPrefix.count + 8)
  }

  /// The last bucket that is over at `now`; nil when that is no date.
  static func lastBucket(at now: Date) -> Int64? {
    let seconds = now.timeIntervalSinceReferenceDate.rounded(.down)
    guard seconds.isFinite else { return nil }
    return Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max - 1)
  }

  /// Deals with the rows that are due, from the earlier of two buckets on, `slices` slices of them
  /// at most.
  ///
  /// `write` runs what it is given, which reads and writes one slice, or answers false when the
  /// cache is no longer to be swept.
  mutating func run(
    from bucket: (found: Int64, noted: Int64), slices: inout Int,
    _ write: (() throws(EngineError) -> Void) throws(EngineError) -> Bool
  ) throws(EngineError) {
    let start = key(toBeginAt: bucket)
    let cursor = try engine.cursor(
      over: EngineRange(from: start, upTo: EngineRange.successor(ofPrefix: indexPrefix)))
    var next = Int64.max
    while try cursor.next() {
      // What is no row of the index is left to be found by a verification.
      let row = cursor.withEntry { key, _ in KeySpace.bucket(in: key, at: indexPrefix.count) }
      guard let bucket = row else { continue }
      guard bucket <= last else {
        next = bucket
        break
      }
      cursor.withEntry { key, _ in dueRows.append(key) }
      guard dueRows.isFull || dueRows.count / Self.sliceRows >= slices else { continue }
      let key = Array(dueRows.key(of: dueRows.count - 1))
      guard try deal(from: start, to: key, slices: &slices, write) else { return }
      place.reached = (bucket, key + [0])
      due.set(bucket)
      guard slices > 0 else { return }
    }
    let isComplete = cursor.isComplete
    if dueRows.count > 0 {
      let key = Array(dueRows.key(of: dueRows.count - 1))
      guard try deal(from: start, to: key, slices: &slices, write) else { return }
    }
    // What a damaged part of a file hides is looked for again.
    guard isComplete else { return }
    place.reached = nil
    due.set(next)
  }

  /// Compacts what was emptied, if that is worth it.
  mutating func compact(asked: Bool) throws(EngineError) {
    try place.emptied.compact(in: engine, asked: asked)
  }

  private mutating func key(toBeginAt bucket: (found: Int64, noted: Int64)) -> [UInt8] {
    if let reached = place.reached, bucket.noted > reached.bucket { return reached.key }
    place.reached = nil
    return KeySpace.expiryKey(
      cache: cache.id, bucket: min(bucket.found, bucket.noted), key: [])
  }

  /// Deals with all rows that were gathered, which lie between two keys of the index.
  ///
  /// False when the cache is no longer to be swept.
  private mutating func deal(
    from start: [UInt8], to end: [UInt8], slices: inout Int,
    _ write: (() throws(EngineError) -> Void) throws(EngineError) -> Bool
  ) throws(EngineError) -> Bool {
    dueRows.sortByUserKey()
    var first = 0
    while first < dueRows.count {
      let slice = slice(from: first)
      guard try write({ () throws(EngineError) in try commit(slice) }) else { return false }
      place.emptied.addRows(slice.count, from: start, to: end)
      slices -= 1
      first = slice.upperBound
    }
    dueRows.removeAll()
    return true
  }

  /// The rows from `first` on that go into one batch: all of a record, or none.
  private func slice(from first: Int) -> Range<Int> {
    var (end, bytes) = (first, 0)
    while end < dueRows.count, end - first < Self.sliceRows, bytes < Self.sliceKeyBytes {
      let record = dueRows.rowsOfRecord(from: end)
      bytes += record.count * dueRows.key(of: end).count
      end = record.upperBound
    }
    return first..<end
  }

  /// Deletes what the slice names, and looks again at what somebody has changed meanwhile.
  private mutating func commit(_ slice: Range<Int>) throws(EngineError) {
    var first = slice.lowerBound
    rows.writeCountBeforeReading = engine.writeCount
    while first < slice.upperBound {
      let record = dueRows.rowsOfRecord(from: first)
      try look(at: record)
      first = record.upperBound
    }
    while !rows.isEmpty {
      rows.mayExceedBudget = true
      if !observations.isEmpty { rows.observer = observations }
      let failed = try engine.write(&rows, synced: false).failed
      var changed: [Range<Int>] = []
      for (index, finding) in findings.enumerated() {
        if failed.contains(index) {
          changed.append(finding.rows)
        } else if let bytes = finding.deletedBytes {
          deleted += 1
          counts.swept.add(bytes: bytes)
          place.emptied.addRecord(finding.recordKey, bytes: bytes)
        }
      }
      moved.note()
      moved = DueNotes()
      findings.removeAll(keepingCapacity: true)
      rows.reset()
      rows.writeCountBeforeReading = engine.writeCount
      for record in changed { try look(at: record) }
    }
  }

  /// Decides what becomes of a record that has rows which are due, and of the rows.
  private mutating func look(at due: Range<Int>) throws(EngineError) {
    let recordKey = recordPrefix + dueRows.userKey(of: due.lowerBound)
    let isThere: Bool
    do throws(EngineError) {
      isThere = try engine.get(recordKey.span.bytes, into: &buffer)
    } catch .corrupt {
      // What cannot be read may be anything.
      return
    }
    guard isThere else {
      return add(due, recordKey, if: .absent)
    }
    let found: Result<Record, RecordFault> = buffer.withBytes { bytes in
      Result { () throws(RecordFault) in try Record(bytes, under: recordKey.span.bytes) }
    }
    switch found {
    case .failure(.damaged): add(due, recordKey, if: .damaged)
    case .failure(.unsupported): return
    case .success(let record):
      guard Int(record.schemaVersion) <= cache.schemaVersion else { return }
      let isExpired = cache.lifetime.freshness(of: record.savedAt, at: now) == .expired
      let bytes = recordKey.count + buffer.count
      add(
        due, recordKey, if: .unchanged(since: record.sequence),
        deleting: isExpired ? bytes : nil)
      if !isExpired { move(record, recordKey: recordKey, bytes: bytes) }
    }
  }

  private mutating func add(
    _ due: Range<Int>, _ recordKey: [UInt8], if condition: WriteBatch.Condition,
    deleting bytes: Int? = nil
  ) {
    let requirement = rows.require(recordKey, condition)
    for row in due {
      let key = dueRows.key(of: row)
      rows.remove(key.span.bytes, if: requirement)
    }
    if bytes != nil {
      rows.remove(
        recordKey.span.bytes, if: requirement, note: Deletion.expired.rawValue)
    }
    findings.append(
      Finding(rows: due, recordKey: recordKey, deletedBytes: bytes))
  }

  /// Gives a record that lives a row where it expires now, if it was saved with another lifetime.
  ///
  /// Saved with this one, it has a row there, or in a bucket after it.
  private mutating func move(_ record: Record, recordKey: [UInt8], bytes: Int) {
    guard let expiry = cache.lifetime.expiry(from: record.savedAt), expiry != record.expiresAt
    else { return }
    let bucket = cache.lifetime.bucket(of: expiry)
    let key = KeySpace.expiryKey(
      cache: cache.id, bucket: bucket, key: recordKey[recordPrefix.count...])
    rows.put(key.span.bytes, stamped: false, if: rows.requirements.count - 1) { buffer in
      buffer.append(varint: UInt64(bytes))
    }
    moved.add(bucket, due)
  }
}
