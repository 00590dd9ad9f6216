import Foundation
import LarderEngine

/// Makes room within a budget: deletes what is next to expire, unless it was read.
///
/// A hand goes through the rows of the caches' expiry indexes, in the order of their buckets. An
/// entry that it comes by is evicted, or, if it was read since the hand last came by, kept until
/// it comes by again. Behind the last row it begins again at the first. This is SIEVE (Zhang and
/// others, NSDI '24) with the index for its queue, in which the order within a bucket is that of
/// the keys.
struct Eviction: ~Copyable {
  /// The row that the hand came by last; to begin with, what comes before all rows.
  struct Hand {
    var bucket: Int64 = .min
    var id: UInt64 = 0
    var key: [UInt8] = []
  }

  private static var sliceRows: Int { 256 }
  /// What is evicted at once, at least, so that not every save has to evict: this share of the
  /// budget, but not more than so many bytes.
  private static var leastShare: Int { 64 }
  private static var leastBytes: Int { 1 << 20 }

  private let budget: Int
  private let accounting: Accounting
  private let engine: any StorageEngine
  private let observations: Observations
  private let counts: StoreCounts
  /// Whether it is the budget of the store, and not of a cache.
  private let isWhole: Bool
  private let now: Date
  private(set) var hand: Hand

  private var rows = WriteBatch()
  /// The records among them, with the condition that they stand under.
  private var records: [(cache: String, bytes: Int, requirement: Int)] = []
  private var buffer = ValueBuffer()

  init(
    of budget: Int, isWhole: Bool, by accounting: Accounting, in engine: any StorageEngine,
    telling observations: Observations, counting counts: StoreCounts, at now: Date,
    from hand: Hand
  ) {
    self.budget = budget
    self.accounting = accounting
    self.engine = engine
    self.observations = observations
    self.counts = counts
    self.isWhole = isWhole
    self.now = now
    self.hand = hand
  }

  /// A row of the index that the hand comes by.
  private struct Row {
    let cache: Accounting.Account
    let bucket: Int64
    /// The user's key, and the row's.
    let key: ArraySlice<UInt8>
    let indexKey: [UInt8]
    let bytes: Int
  }

  /// Evicts until there is as much room as a batch was short of.
  ///
  /// - Returns: Whether there is room for the batch.
  mutating func makeRoom(for shortage: Shortage) throws(EngineError) -> Bool {
    let allowed = shortage.limit - shortage.growth
    // Somebody else may have made room while this waited for its turn.
    if used <= allowed { return true }
    let goal = min(allowed, used - min(shortage.limit / Self.leastShare, Self.leastBytes))
    // The rest of the round that the hand is on, one more, and one without second chances: readers
    // may be faster than the hand.
    for round in 0...2 {
      var isEnd = false
      while !isEnd {
        isEnd = try evictSlice(atLeast: used - goal, givesChances: round < 2)
        if used <= goal { return true }
      }
      hand = Hand()
    }
    return used <= allowed
  }

  private var used: Int { accounting.used(of: budget) }

  /// Evicts some entries, as much as is wanted or as fits into one batch.
  ///
  /// - Returns: Whether the hand has come by the last row.
  private mutating func evictSlice(
    atLeast wanted: Int, givesChances: Bool
  ) throws(EngineError) -> Bool {
    var lines = try accounting.accounts(of: budget).map { cache throws(EngineError) in
      try IndexLine(of: cache, in: engine, behind: hand)
    }
    rows.writeCountBeforeReading = engine.writeCount
    var freed = 0
    while freed < wanted, rows.rows.count < Self.sliceRows {
      guard let next = lines.indices.min(by: { lines[$0].comesBefore(lines[$1]) }),
        let row = lines[next].row
      else {
        try commit()
        return true
      }
      freed += try look(at: row, givesChances: givesChances)
      hand = Hand(bucket: row.bucket, id: row.cache.id, key: Array(row.key))
      try lines[next].advance()
    }
    try commit()
    return false
  }

  private mutating func commit() throws(EngineError) {
    guard !rows.isEmpty else { return }
    rows.mayExceedBudget = true
    if !observations.isEmpty { rows.observer = observations }
    let failed = try engine.write(&rows, synced: false).failed
    for (cache, bytes, requirement) in records where !failed.contains(requirement) {
      let counts = counts.ofCache(cache)
      if isWhole {
        counts.evictedByStoreBudget.add(bytes: bytes)
      } else {
        counts.evictedByOwnBudget.add(bytes: bytes)
      }
    }
    records.removeAll(keepingCapacity: true)
    rows.reset()
  }

  /// Decides what becomes of an entry and its row; answers how many bytes that frees.
  private mutating func look(at row: Row, givesChances: Bool) throws(EngineError) -> Int {
    let recordKey = KeySpace.records.prefix(ofCache: row.cache.id) + row.key
    do throws(EngineError) {
      guard try engine.get(recordKey.span.bytes, into: &buffer) else {
        return remove(row, if: rows.require(recordKey, .absent))
      }
    } catch .corrupt {
      // What cannot be read cannot be deleted on condition.
      return 0
    }
    let bytes = recordKey.count + buffer.count
    let record: Record
    do throws(RecordFault) {
      record = try buffer.withBytes { bytes throws(RecordFault) in
        try Record(bytes, under: recordKey.span.bytes)
      }
    } catch {
      guard error == .damaged else { return 0 }
      return remove(
        row, if: rows.require(recordKey, .damaged), record: recordKey, bytes, .evicted)
    }
    let same = WriteBatch.Condition.unchanged(since: record.sequence)
    if try isOutdated(row, of: record) {
      return remove(row, if: rows.require(recordKey, same))
    }
    let isExpired = row.cache.lifetime.freshness(of: record.savedAt, at: now) == .expired
    if !isExpired, givesChances, row.cache.marks?.take(recordKey.span.bytes) == true { return 0 }
    return remove(
      row, if: rows.require(recordKey, same), record: recordKey, bytes,
      isExpired ? .expired : .evicted)
  }

  /// Whether the record has a row of its own elsewhere, since it was saved again.
  ///
  /// A record that was saved when the cache had another lifetime has no row where this one would
  /// put it.
  private func isOutdated(_ row: Row, of record: Record) throws(EngineError) -> Bool {
    let bucket = row.cache.lifetime.evictionBucket(of: record.savedAt)
    guard bucket != row.bucket else { return false }
    let key = KeySpace.expiryKey(cache: row.cache.id, bucket: bucket, key: row.key)
    var buffer = ValueBuffer()
    return try engine.get(key.span.bytes, into: &buffer)
  }

  private mutating func remove(_ row: Row, if requirement: Int) -> Int {
    rows.remove(row.indexKey.span.bytes, if: requirement)
    return row.bytes
  }

  private mutating func remove(
    _ row: Row, if requirement: Int, record recordKey: [UInt8], _ bytes: Int, _ why: Deletion
  ) -> Int {
    rows.remove(recordKey.span.bytes, if: requirement, note: why.rawValue)
    records.append((row.cache.name, bytes, requirement))
    return remove(row, if: requirement) + bytes
  }

  /// The rows of one cache's index that the hand has not come by.
  private struct IndexLine {
    private let cache: Accounting.Account
    private let prefixCount: Int
    private let cursor: any EngineCursor
    /// The next row; nil behind the last one.
    private(set) var row: Row?

    init(
      of cache: Accounting.Account, in engine: any StorageEngine, behind hand: Hand
    ) throws(EngineError) {
      self.cache = cache
      let prefix = KeySpace.expiry.prefix(ofCache: cache.id)
      prefixCount = prefix.count
      // In one bucket, the caches follow each other by their numbers.
      var start = KeySpace.expiryKey(cache: cache.id, bucket: hand.bucket, key: [])
      if cache.id == hand.id {
        start += hand.key + [0]
      } else if cache.id < hand.id, hand.bucket < .max {
        start = KeySpace.expiryKey(cache: cache.id, bucket: hand.bucket + 1, key: [])
      }
      cursor = try engine.cursor(
        over: EngineRange(from: start, upTo: EngineRange.successor(ofPrefix: prefix)))
      try advance()
    }

    mutating func advance() throws(EngineError) {
      row = nil
      while try cursor.next() {
        let (key, bytes) = cursor.withEntry { key, value in
          (key.withUnsafeBytes { Array($0) }, key.byteCount + value.byteCount)
        }
        // What is no row of the index is left to be found by a verification.
        guard let bucket = KeySpace.bucket(in: key.span.bytes, at: prefixCount) else { continue }
        row = Row(
          cache: cache, bucket: bucket, key: key[(prefixCount + 8)...], indexKey: key,
          bytes: bytes)
        return
      }
    }

    func comesBefore(_ other: IndexLine) -> Bool {
      guard let row else { return false }
      guard let theirs = other.row else { return true }
      return (row.bucket, row.cache.id) < (theirs.bucket, theirs.cache.id)
    }
  }
}
