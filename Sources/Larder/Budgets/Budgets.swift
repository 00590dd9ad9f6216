import Synchronization

/// The byte budgets of a store and its caches.
///
/// A cache is counted if it has a budget of its own, or if the store has one. A counted cache has
/// an index row for every record, by which it can be evicted.
final class Budgets: Sendable {
  let accounting = Accounting()
  /// The store's own budget, and the marks of what was read of all its caches.
  private let whole: (budget: Int, marks: ReadMarks)?
  /// The hand of each budget's evictions.
  private let hands = Mutex<[Int: Eviction.Hand]>([:])

  /// - Parameter storeLimit: The budget of the store, in bytes; nil if it has none.
  init(storeLimit: Int?) {
    whole = storeLimit.map { [accounting] in (accounting.addBudget($0), ReadMarks(budget: $0)) }
  }

  /// Whether a budget is the store's, and not a cache's.
  func isOfStore(_ budget: Int) -> Bool { budget == whole?.budget }

  /// Whether a cache with this budget, or none, is counted.
  func counts(byteBudget: Int?) -> Bool { byteBudget != nil || whole != nil }

  /// The marks for reads of a cache with this budget; nil if it is not counted.
  func marks(byteBudget: Int?) -> ReadMarks? { whole?.marks ?? byteBudget.map(ReadMarks.init) }

  /// Runs an eviction for a budget: one at a time.
  func withHand<R>(
    of budget: Int, _ body: (inout Eviction.Hand) throws(StoreError) -> R
  ) throws(StoreError) -> R {
    try hands.withLock { hands throws(StoreError) in
      try body(&hands[budget, default: Eviction.Hand()])
    }
  }
}

// MARK: - Opening

extension Budgets {
  /// Resumes counting the caches that are counted on disk; all caches if the store has a budget.
  ///
  /// Called before anything is written: sweeps also delete from caches that are not open.
  func resume(_ registry: borrowing Registry) throws(StoreError) {
    let context = registry.context
    let isAnyCounted = try context.cursor(over: EngineRange(prefix: Metadata.bytesPrefix)).next()
    guard isAnyCounted || whole != nil else { return }
    for (name, registration) in try registry.dormant().caches {
      let cache = CountedCache(
        name: name.text, id: registration.id, lifetime: registration.lifetime, marks: whole?.marks,
        budgets: [whole?.budget].compactMap(\.self))
      let key = Metadata.bytes(cache.id)
      if let value = try context.get(key), let bytes = Metadata.number(in: value, under: key) {
        accounting.open(Accounting.Account(cache, bytes: Metadata.heldBytes(counted: bytes)))
      } else if whole != nil {
        try count(cache, in: context)
      }
    }
  }

  /// Starts, or stops, to count a cache that is being opened.
  ///
  /// Nothing is written to the cache meanwhile.
  func open(
    _ cache: any OpenCache, as registration: Registration, isNew: Bool, in context: StoreContext
  ) throws(StoreError) {
    let known = accounting.count(registration.id)
    guard counts(byteBudget: cache.byteBudget) else {
      guard known != nil else { return }
      // Counted until the count is removed: if that fails, a sweep may still delete entries.
      var rows = WriteBatch()
      rows.remove(Metadata.bytes(registration.id).span.bytes)
      try context.writeMetadata(&rows, cache: cache.name)
      accounting.close([registration.id])
      return
    }
    let own = cache.byteBudget.map(accounting.addBudget)
    let counted = CountedCache(
      name: cache.name, id: registration.id, lifetime: registration.lifetime, marks: cache.marks,
      budgets: [whole?.budget, own].compactMap(\.self), residents: cache.memory?.residents)
    if let bytes = isNew ? 0 : known.flatMap({ $0.isExact ? $0.bytes : nil }) {
      accounting.open(Accounting.Account(counted, bytes: bytes))
    } else {
      accounting.close([registration.id])
      try count(counted, in: context)
    }
  }

  /// Counts the bytes of a cache, and gives every record an index row, by which it can be evicted.
  private func count(_ cache: CountedCache, in context: StoreContext) throws(StoreError) {
    var isIndexed = true
    do throws(StoreError) {
      try addMissingRows(of: cache, in: context)
    } catch .corrupt {
      // Records that cannot be read cannot be evicted either; the others can.
      isIndexed = false
    }
    let held: (bytes: Int, isComplete: Bool)
    do throws(StoreError) {
      held = try KeySpace.heldBytes(ofCache: cache.id, in: context.engine)
    } catch {
      throw error.naming(cache: cache.name)
    }
    let account = Accounting.Account(
      cache, bytes: held.bytes, isExact: isIndexed && held.isComplete)
    accounting.open(account)
    guard account.isExact else { return }
    var rows = WriteBatch()
    rows.putMetadata(UInt64(held.bytes), under: Metadata.bytes(cache.id))
    try context.writeMetadata(&rows, cache: cache.name)
  }

  /// Adds index rows for records that had no limit when they were saved, or have none now.
  private func addMissingRows(
    of cache: CountedCache, in context: StoreContext
  ) throws(StoreError) {
    let cursor = try context.cursor(
      over: EngineRange(prefix: KeySpace.records.prefix(ofCache: cache.id)), cache: cache.name)
    var rows = WriteBatch()
    while try cursor.next() {
      cursor.withEntry { key, value in
        do throws(RecordFault) {
          let record = try Record(value, under: key)
          guard let recordKey = RecordKey(key),
            record.expiresAt == nil
              || cache.lifetime.applied(to: record).expiry(from: record.savedAt) == nil
          else { return }
          rows.putIndexRow(
            of: recordKey,
            in: cache.lifetime.applied(to: record).evictionBucket(of: record.savedAt),
            recordBytes: key.byteCount + value.byteCount)
        } catch {
          // Left to validation, or to a later version of the library. It is never evicted.
        }
      }
      guard rows.rows.count >= 256 else { continue }
      try context.writeMetadata(&rows, cache: cache.name)
      rows.reset()
    }
    if !rows.isEmpty { try context.writeMetadata(&rows, cache: cache.name) }
  }
}
