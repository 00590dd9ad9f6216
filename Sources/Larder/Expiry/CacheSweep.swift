import Foundation

/// The date of a sweep.
struct SweepDate {
  let now: Date
  /// The last bucket that has ended.
  let lastBucket: Int64

  /// Nil if `now` is not a valid date: with it every entry would look expired.
  init?(_ now: Date) {
    let seconds = now.timeIntervalSinceReferenceDate.rounded(.down)
    guard seconds.isFinite else { return nil }
    self.now = now
    lastBucket = Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max - 1)
  }
}

/// A sweep's place in a cache, which the next sweep continues from.
struct SweepPlace {
  /// The id of the cache when it was swept.
  let id: UInt64
  /// The bucket and the index key after the last row that was handled; nil if the sweep reached the
  /// last due row.
  var reached: (bucket: Int64, key: [UInt8])?
  var emptied = EmptiedRanges()
}

/// One pass over the due rows of a cache's expiry index.
///
/// It collects due rows, sorts them by the keys of their records, and deletes them in slices: the
/// rows of a record on condition that the record is still the one that was read, and the record
/// with them if it has expired. A row without a record is deleted on condition that there still is
/// none. Rows whose record has changed meanwhile are inspected again.
struct CacheSweep: ~Copyable {
  private static var sliceRows: Int { 256 }
  private static var sliceKeyBytes: Int { 1 << 20 }

  private let context: StoreContext
  private let counts: CacheCounts
  private let cache: SweptCache
  private let date: SweepDate
  private let indexPrefix: [UInt8]

  private(set) var place: SweepPlace
  private(set) var deleted = 0
  private var dueRows: DueRows
  private var slice: ConditionalSlice<Finding>

  /// Some rows of one record.
  private struct Finding {
    let rows: Range<Int>
    let key: RecordKey
    /// The size of the record if it is deleted with the rows.
    let deletedBytes: Int?
  }

  /// `place` is where the last sweep of the cache ended, if that was under the same id.
  init(of cache: SweptCache, at date: SweepDate, from place: SweepPlace?, in context: StoreContext)
  {
    self.context = context
    self.cache = cache
    self.date = date
    self.place = place ?? SweepPlace(id: cache.registration.id)
    counts = context.counts.ofCache(cache.name.text)
    indexPrefix = KeySpace.expiry.prefix(ofCache: cache.registration.id)
    dueRows = DueRows(cacheID: cache.registration.id)
    slice = ConditionalSlice(in: context, freesRoom: true)
  }

  /// Sweeps at most `slices` slices of due rows.
  ///
  /// `bounds` are the earliest buckets that may have rows, as ``NextDue/take()`` returned them.
  /// `slices` is the number of slices left. `perform` runs its argument, which reads and writes one
  /// slice; it returns false if the cache must not be swept any further.
  mutating func run(
    from bounds: (found: Int64, noted: Int64), slices: inout Int,
    _ perform: (() throws(StoreError) -> Void) throws(StoreError) -> Bool
  ) throws(StoreError) {
    let start = startKey(bounds)
    let cursor = try context.cursor(
      over: EngineRange(from: start, upTo: EngineRange.successor(ofPrefix: indexPrefix)),
      cache: cache.name.text)
    var next = Int64.max
    while try cursor.next() {
      // Malformed rows are left to verification.
      let found = cursor.withEntry { key, _ in IndexRow.bucket(in: key, after: indexPrefix.count) }
      guard let bucket = found else { continue }
      guard bucket <= date.lastBucket else {
        next = bucket
        break
      }
      cursor.withEntry { key, _ in dueRows.append(key) }
      guard dueRows.isFull || dueRows.count / Self.sliceRows >= slices else { continue }
      let key = Array(dueRows.key(of: dueRows.count - 1))
      guard try sweepCollected(from: start, to: key, slices: &slices, perform) else { return }
      place.reached = (bucket, key + [0])
      cache.due.set(bucket)
      guard slices > 0 else { return }
    }
    let isComplete = cursor.isComplete
    if dueRows.count > 0 {
      let key = Array(dueRows.key(of: dueRows.count - 1))
      guard try sweepCollected(from: start, to: key, slices: &slices, perform) else { return }
    }
    // Rows that a damaged block hides are searched again by the next sweep.
    guard isComplete else { return }
    place.reached = nil
    cache.due.set(next)
  }

  /// Compacts the emptied ranges if that is worth it.
  mutating func compact(asked: Bool) throws(StoreError) {
    try place.emptied.compact(in: context, asked: asked)
  }

  private mutating func startKey(_ bounds: (found: Int64, noted: Int64)) -> [UInt8] {
    if let reached = place.reached, bounds.noted > reached.bucket { return reached.key }
    place.reached = nil
    return IndexRow(
      cacheID: cache.registration.id, bucket: min(bounds.found, bounds.noted), userKey: []
    ).key
  }

  /// Sweeps the rows that were collected between two keys of the index.
  ///
  /// Returns false if the cache must not be swept any further.
  private mutating func sweepCollected(
    from start: [UInt8], to end: [UInt8], slices: inout Int,
    _ perform: (() throws(StoreError) -> Void) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    dueRows.sortByUserKey()
    var first = 0
    while first < dueRows.count {
      let rows = sliceRows(from: first)
      guard try perform({ () throws(StoreError) in try sweep(rows) }) else { return false }
      place.emptied.addRows(rows.count, from: start, to: end)
      slices -= 1
      first = rows.upperBound
    }
    dueRows.removeAll()
    return true
  }

  /// The rows from `first` on that fit into a slice; all rows of a record, or none.
  private func sliceRows(from first: Int) -> Range<Int> {
    var (end, bytes) = (first, 0)
    while end < dueRows.count, end - first < Self.sliceRows, bytes < Self.sliceKeyBytes {
      let record = dueRows.rowsOfRecord(from: end)
      bytes += record.count * dueRows.key(of: end).count
      end = record.upperBound
    }
    return first..<end
  }

  private mutating func sweep(_ rows: Range<Int>) throws(StoreError) {
    var first = rows.lowerBound
    while first < rows.upperBound {
      let record = dueRows.rowsOfRecord(from: first)
      try inspect(record)
      first = record.upperBound
    }
    while !slice.isEmpty {
      let (applied, changed) = try slice.commit()
      for finding in applied {
        guard let bytes = finding.deletedBytes else { continue }
        deleted += 1
        counts.swept.add(bytes: bytes)
        place.emptied.addRecord(finding.key.bytes, bytes: bytes)
      }
      for finding in changed { try inspect(finding.rows) }
    }
  }

  /// Decides what becomes of due rows and of their record.
  private mutating func inspect(_ rows: Range<Int>) throws(StoreError) {
    let key = RecordKey(
      cacheID: cache.registration.id, userKey: dueRows.userKey(of: rows.lowerBound))
    switch try slice.find(key) {
    // Neither can be judged by this version, or now.
    case .unreadable, .unsupported: return
    case .missing: delete(rows, key, if: .absent)
    case .damaged: delete(rows, key, if: .damaged(Record.stamp))
    case .intact(let record, let bytes):
      guard Int(record.schemaVersion) <= cache.registration.schemaVersion else { return }
      let same = WriteBatch.Condition.unchanged(since: record.sequence, in: Record.stamp)
      let lifetime = cache.registration.lifetime.applied(to: record)
      guard cache.registration.lifetime.freshness(of: record, at: date.now) != .expired else {
        return delete(rows, key, if: same, recordBytes: bytes)
      }
      // Saved with this lifetime, the record has a row in this bucket or a later one. Saved with
      // another one, it gets a row in the bucket where it expires now, if it does.
      let expiry = lifetime.expiry(from: record.savedAt)
      let bucket = expiry == record.expiresAt ? nil : expiry.map(lifetime.bucket)
      delete(rows, key, if: same, movingTo: bucket, size: bytes)
    }
  }

  private mutating func delete(
    _ rows: Range<Int>, _ key: RecordKey, if condition: WriteBatch.Condition,
    recordBytes: Int? = nil, movingTo bucket: Int64? = nil, size: Int = 0
  ) {
    let finding = Finding(rows: rows, key: key, deletedBytes: recordBytes)
    slice.add(finding, key: key.bytes, if: condition, readBy: .lookup) { write, requirement in
      for row in rows { write.rows.remove(dueRows.key(of: row).span.bytes, if: requirement) }
      if recordBytes != nil {
        write.rows.remove(
          key.bytes.span.bytes, if: requirement, note: RemovalCause.expired.rawValue)
      }
      if let bucket {
        write.rows.putIndexRow(of: key, in: bucket, recordBytes: size, if: requirement)
        write.dueNotes.add(bucket, cache.due)
      }
    }
  }
}
