import Foundation

/// Makes room in a budget: evicts entries in the order of its ``EvictionQueue``.
struct Eviction: ~Copyable {
  /// The least that is evicted at once, so that not every save has to evict: this share of the
  /// budget, but not more than so many bytes.
  private static var leastShare: Int { 512 }
  private static var leastBytes: Int { 1 << 20 }
  /// The number of entries that are added to the queue at once by its scan.
  private static var scannedEntries: Int { 1024 }

  private let shortage: Shortage
  private let context: StoreContext
  private let now: Date
  private let queue: EvictionQueue
  /// The entries that were evicted, and their bytes.
  private var evicted = (entries: 0, bytes: 0)
  private var changes: RecordChanges
  /// The candidates that are about to be evicted, by their keys: the queue may have one twice.
  private var chosen: [[UInt8]: (candidate: EvictionQueue.Candidate, cache: CountedCache)] = [:]
  /// The number of candidates that were kept since one was evicted.
  private var kept = 0

  init(of shortage: Shortage, in context: StoreContext, at now: Date) {
    self.shortage = shortage
    self.context = context
    self.now = now
    queue = context.budgets.accounting.queue(of: shortage.budget)
    changes = RecordChanges(in: context, freesRoom: true)
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
    // The number of entries that were evicted before the last restart.
    var before: Int?
    while used > goal {
      let scan = queue.use()
      if let place = scan.place { try addEntries(by: scan, from: place) }
      try evictSlice(atLeast: used - goal)
      if mayContinue(to: goal) { continue }
      // A commit can be seen before its bytes are counted: entries that other threads have just
      // removed are found no more, and still counted.
      try awaitCommits()
      if mayContinue(to: goal) { continue }
      // An entry that could not be evicted has left the queue, and may be evicted by now; one that
      // was under way when the queue came into use may be missing. So all are tried once more.
      guard before != evicted.entries else { return used <= allowed }
      before = evicted.entries
      kept = 0
      queue.restart()
    }
    // Other threads may have filled the room again; then the write is refused, and evicts again.
    return true
  }

  /// Whether the goal is reached, or there is an entry left that may be evicted.
  ///
  /// The queue is asked after `used`, so that it has whatever other threads added before.
  private func mayContinue(to goal: Int) -> Bool {
    used <= goal || hasCandidates || queue.use().place != nil
  }

  /// Waits until the commits that are under way have ended and are counted.
  private func awaitCommits() throws(StoreError) {
    // It takes its place in the line of commits, and writes nothing.
    var nothing = WriteBatch()
    try context.engine.write(&nothing, synced: false)
  }

  private var used: Int { context.budgets.accounting.used(of: shortage.budget) }

  /// Whether the queue has entries that may be evicted.
  ///
  /// Other threads may write each entry again before it is deleted, and then nothing is evicted.
  private var hasCandidates: Bool {
    let count = queue.count
    return count > 0 && kept <= 64 * (count + 1)
  }

  /// Adds a slice of the entries that were there before the queue was in use.
  private func addEntries(
    by scan: EvictionQueue.Scan, from place: [UInt8]
  ) throws(StoreError) {
    var found: [EvictionQueue.Entry] = []
    let prefixes = context.budgets.accounting.accounts(of: shortage.budget)
      .map { KeySpace.records.prefix(ofCache: $0.cache.id) }
      .sorted { $0.lexicographicallyPrecedes($1) }
    for prefix in prefixes {
      var range = EngineRange(prefix: prefix)
      if range.lower.lexicographicallyPrecedes(place) { range.lower = place }
      guard let end = range.upper, range.lower.lexicographicallyPrecedes(end) else { continue }
      do throws(StoreError) {
        let cursor = try context.cursor(over: range, readsPayloads: false)
        while try cursor.next() {
          guard let key = cursor.withEntry({ key, _ in RecordKey(key) }) else { continue }
          if found.count == Self.scannedEntries {
            return queue.add(found, from: scan, to: key.bytes)
          }
          found.append(
            EvictionQueue.Entry(key: key, bytes: key.bytes.count + cursor.valueCount))
        }
      } catch .corrupt {
        // Thrown at the end of the range. Entries in damaged blocks cannot be evicted.
      }
    }
    queue.add(found, from: scan, to: nil)
  }

  /// Evicts entries of `wanted` bytes, or as many as fit into one batch.
  private mutating func evictSlice(atLeast wanted: Int) throws(StoreError) {
    var freed = 0
    while freed < wanted, !changes.isFull, hasCandidates, let next = queue.next() {
      freed += try evict(next)
    }
    try commit()
  }

  /// Commits the evictions; entries that have changed meanwhile are kept.
  private mutating func commit() throws(StoreError) {
    defer { chosen.removeAll(keepingCapacity: true) }
    guard !changes.isEmpty else { return }
    let isStoreBudget = context.budgets.isOfStore(shortage.budget)
    let (applied, changed) = try changes.commit()
    for change in applied {
      guard let (candidate, cache) = chosen[change.key] else { continue }
      kept = 0
      queue.noteEviction(of: candidate)
      evicted = (evicted.entries + 1, evicted.bytes + change.bytes)
      context.counts.ofCache(cache.name).deleted(
        change, isStoreBudget ? .storeBudget : .cacheBudget,
        keyedBy: cache.keyKind)
    }
    for change in changed {
      if let (candidate, _) = chosen[change.key] { keep(candidate) }
    }
  }

  private mutating func keep(_ candidate: EvictionQueue.Candidate) {
    kept += 1
    queue.keep(candidate)
  }

  /// Decides what becomes of a candidate; returns the bytes that this frees.
  private mutating func evict(
    _ candidate: EvictionQueue.Candidate
  ) throws(StoreError) -> Int {
    let key = candidate.entry.key
    // The cache may have been cleared, or opened without the budget.
    guard let cache = context.budgets.accounting.account(key.cacheID)?.cache,
      cache.budgets.contains(shortage.budget), chosen[key.bytes] == nil
    else { return 0 }
    switch try changes.find(key) {
    // These cannot be deleted under a condition, and stay in the store.
    case .unreadable, .unsupported: return 0
    case .missing:
      _ = cache.recentReads?.take(candidate.hash)
      return 0
    case .damaged(let bytes):
      return remove(candidate, of: cache, if: .damaged(Record.stamp), bytes: bytes, .evicted)
    case .intact(let record, let bytes):
      let isExpired = cache.lifetime.freshness(of: record, at: now) == .expired
      // Each stays four times at most, unless readers are faster than the visits.
      if !isExpired, takeReads(of: candidate, in: cache), kept <= 4 * (queue.count + 1) {
        keep(candidate)
        return 0
      }
      return remove(
        candidate, of: cache, if: .unchanged(since: record.sequence, in: Record.stamp),
        bytes: bytes, isExpired ? .expired : .evicted)
    }
  }

  /// Whether a candidate was read often enough to stay.
  private func takeReads(
    of candidate: EvictionQueue.Candidate, in cache: CountedCache
  ) -> Bool {
    // A read from memory counts as more than one: only whether there were any is known.
    let wasReadFromMemory =
      context.memory?.takeRead(candidate.entry.key, in: cache.residents) == true
    guard let counts = cache.recentReads else { return wasReadFromMemory }
    let hash = candidate.hash
    let isKept = candidate.isNew ? counts.take(hash) >= 2 : counts.decrement(hash) >= 1
    return isKept || wasReadFromMemory
  }

  /// Removes an entry; returns the bytes that this frees.
  private mutating func remove(
    _ candidate: EvictionQueue.Candidate, of cache: CountedCache,
    if condition: WriteBatch.Condition, bytes: Int, _ cause: RemovalCause
  ) -> Int {
    let key = candidate.entry.key.bytes
    chosen[key] = (candidate, cache)
    changes.remove(key, bytes: bytes, if: condition, cause)
    return bytes
  }
}
