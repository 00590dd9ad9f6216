import Foundation

/// Makes room in a budget: evicts the entry closest to expiry that was not read recently.
///
/// A hand visits the rows of the caches' expiry indexes in the order of their buckets. It evicts
/// each entry, or keeps it until the next visit if it was read since the last one. After the last
/// row it starts again at the first. This is SIEVE (Zhang and others, NSDI '24) with the index as
/// its queue; within a bucket, the order is that of the keys.
struct Eviction: ~Copyable {
  /// The row that the hand visited last; at first, a place before all rows.
  struct Hand {
    var bucket: Int64 = .min
    var id: UInt64 = 0
    var key: [UInt8] = []
  }

  /// The least that is evicted at once, so that not every save has to evict: this share of the
  /// budget, but not more than so many bytes.
  private static var leastShare: Int { 64 }
  private static var leastBytes: Int { 1 << 20 }

  private let shortage: Shortage
  private let context: StoreContext
  private let now: Date
  private(set) var hand: Hand
  /// The entries that were evicted, and their bytes.
  private var evicted = (entries: 0, bytes: 0)
  private var slice: ConditionalSlice<Evicted?>

  /// A record that is deleted with its row.
  private struct Evicted {
    let cache: String
    let bytes: Int
  }

  init(of shortage: Shortage, in context: StoreContext, at now: Date, from hand: Hand) {
    self.shortage = shortage
    self.context = context
    self.now = now
    self.hand = hand
    slice = ConditionalSlice(in: context, freesRoom: true)
  }

  /// Evicts until there is the room that a write was short of; returns whether there is.
  mutating func makeRoom() throws(StoreError) -> Bool {
    defer {
      context.log.evicted(
        evicted.entries, bytes: evicted.bytes,
        forStore: context.budgets.isOfStore(shortage.budget))
    }
    let allowed = shortage.limit - shortage.growth
    // Another thread may have made room while this one waited for its turn.
    if used <= allowed { return true }
    let goal = min(allowed, used - min(shortage.limit / Self.leastShare, Self.leastBytes))
    // The rest of the hand's round, one more round, and one that keeps nothing: readers may mark
    // entries faster than the hand moves.
    for round in 0...2 {
      var isEnd = false
      while !isEnd {
        isEnd = try evictSlice(atLeast: used - goal, keepsRead: round < 2)
        if used <= goal { return true }
      }
      hand = Hand()
    }
    return used <= allowed
  }

  private var used: Int { context.budgets.accounting.used(of: shortage.budget) }

  /// Evicts entries of `wanted` bytes, or as many as fit into one batch.
  ///
  /// - Returns: Whether the hand has visited the last row.
  private mutating func evictSlice(
    atLeast wanted: Int, keepsRead: Bool
  ) throws(StoreError) -> Bool {
    var lines: [IndexLine] = []
    for cache in context.budgets.accounting.accounts(of: shortage.budget) {
      lines.append(try IndexLine(of: cache, in: context, after: hand))
    }
    var freed = 0
    while freed < wanted, !slice.isFull {
      guard let next = lines.indices.min(by: { lines[$0].comesBefore(lines[$1]) }),
        let row = lines[next].next
      else {
        try commit()
        return true
      }
      freed += try evict(row, keepsRead: keepsRead)
      hand = Hand(bucket: row.row.bucket, id: row.row.cacheID, key: row.row.userKey)
      try lines[next].advance()
    }
    try commit()
    return false
  }

  /// Commits the slice; entries that have changed meanwhile stay until the hand's next visit.
  private mutating func commit() throws(StoreError) {
    guard !slice.isEmpty else { return }
    let isStoreBudget = context.budgets.isOfStore(shortage.budget)
    for case let record? in try slice.commit().applied {
      evicted = (evicted.entries + 1, evicted.bytes + record.bytes)
      let counts = context.counts.ofCache(record.cache)
      if isStoreBudget {
        counts.evictedByStoreBudget.add(bytes: record.bytes)
      } else {
        counts.evictedByOwnBudget.add(bytes: record.bytes)
      }
    }
  }

  /// Decides what becomes of a row and its entry; returns the bytes that this frees.
  private mutating func evict(_ row: VisitedRow, keepsRead: Bool) throws(StoreError) -> Int {
    let key = row.row.recordKey
    switch try slice.find(key) {
    // Neither can be deleted under a condition.
    case .unreadable, .unsupported: return 0
    case .missing: return remove(row, key, if: .absent)
    case .damaged(let bytes):
      return remove(row, key, if: .damaged(Record.stamp), recordBytes: bytes, .evicted)
    case .intact(let record, let bytes):
      let same = WriteBatch.Condition.unchanged(since: record.sequence, in: Record.stamp)
      if try isOutdated(row, of: record) { return remove(row, key, if: same) }
      let cache = row.cache.cache
      let isExpired = cache.lifetime.freshness(of: record, at: now) == .expired
      if !isExpired, keepsRead, wasRead(key, in: cache) { return 0 }
      return remove(row, key, if: same, recordBytes: bytes, isExpired ? .expired : .evicted)
    }
  }

  /// Whether an entry was read since the last call, from disk or from memory.
  private func wasRead(_ key: RecordKey, in cache: CountedCache) -> Bool {
    let wasReadFromDisk = cache.marks?.take(key.bytes.span.bytes) == true
    let wasReadFromMemory = context.memory?.takeRead(key, in: cache.residents) == true
    return wasReadFromDisk || wasReadFromMemory
  }

  /// Whether the record was saved again since, and has its row elsewhere.
  ///
  /// A record that was saved with another lifetime has no row where this one would put it.
  private func isOutdated(_ row: VisitedRow, of record: Record) throws(StoreError) -> Bool {
    let lifetime = row.cache.cache.lifetime.applied(to: record)
    let bucket = lifetime.evictionBucket(of: record.savedAt)
    guard bucket != row.row.bucket else { return false }
    let current = IndexRow(cacheID: row.row.cacheID, bucket: bucket, userKey: row.row.userKey)
    var buffer = ValueBuffer()
    return try context.engine.get(current.key.span.bytes, into: &buffer)
  }

  /// Removes a row, and the record with it if its size is given; returns the bytes of both.
  private mutating func remove(
    _ row: VisitedRow, _ key: RecordKey, if condition: WriteBatch.Condition,
    recordBytes: Int? = nil, _ cause: RemovalCause = .removed
  ) -> Int {
    let evicted = recordBytes.map { Evicted(cache: row.cache.cache.name, bytes: $0) }
    slice.add(evicted, key: key.bytes, if: condition, readBy: .lookup) { write, requirement in
      if evicted != nil {
        write.rows.remove(key.bytes.span.bytes, if: requirement, note: cause.rawValue)
      }
      write.rows.remove(row.row.key.span.bytes, if: requirement)
    }
    return row.bytes + (recordBytes ?? 0)
  }
}

/// A row that the hand visits.
private struct VisitedRow {
  let cache: Accounting.Account
  let row: IndexRow
  /// The size of the row.
  let bytes: Int
}

/// The rows of one cache's index that the hand has not visited.
private struct IndexLine {
  private let cache: Accounting.Account
  private let cursor: StoreCursor
  /// The next row; nil after the last one.
  private(set) var next: VisitedRow?

  init(
    of cache: Accounting.Account, in context: StoreContext, after hand: Eviction.Hand
  ) throws(StoreError) {
    self.cache = cache
    let id = cache.cache.id
    // Within a bucket, the hand visits the caches in the order of their ids.
    let startsAfterBucket = id < hand.id && hand.bucket < .max
    let start = IndexRow(
      cacheID: id, bucket: startsAfterBucket ? hand.bucket + 1 : hand.bucket,
      userKey: id == hand.id ? hand.key + [0] : [])
    let prefix = KeySpace.expiry.prefix(ofCache: id)
    cursor = try context.cursor(
      over: EngineRange(from: start.key, upTo: EngineRange.successor(ofPrefix: prefix)))
    try advance()
  }

  mutating func advance() throws(StoreError) {
    next = nil
    while next == nil, try cursor.next() {
      // Malformed rows are left to verification.
      next = cursor.withEntry { key, value in
        IndexRow(key: key).map {
          VisitedRow(cache: cache, row: $0, bytes: key.byteCount + value.byteCount)
        }
      }
    }
  }

  func comesBefore(_ other: IndexLine) -> Bool {
    guard let row = next?.row else { return false }
    guard let theirs = other.next?.row else { return true }
    return (row.bucket, row.cacheID) < (theirs.bucket, theirs.cacheID)
  }
}
