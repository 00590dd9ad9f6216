/// The byte budgets of a store and its caches.
///
/// A cache is counted if it has a budget of its own, or if the store has one.
final class Budgets: Sendable {
  let accounting = Accounting()
  /// The store's own budget, and how often the entries of all its caches were read.
  private let whole: (budget: Int, recentReads: RecentReads)?
  /// Held by the thread that evicts.
  private let turn = Lock(())

  /// - Parameters:
  ///   - storeLimit: The budget of the store, in bytes; nil if it has none.
  ///   - diskBudget: The budget of its files; nil if it has none. Entries are counted for it, too.
  init(storeLimit: Int?, diskBudget: Int?) {
    let expected = [storeLimit, diskBudget].compactMap(\.self).min()
    whole = expected.map { [accounting] expected in
      (
        accounting.addBudget(storeLimit ?? .max, expecting: expected),
        RecentReads(budget: expected)
      )
    }
  }

  /// The bytes of the entries of all caches; 0 if the store has no budget.
  var bytesOfStore: Int { whole.map { accounting.used(of: $0.budget) } ?? 0 }

  /// What evicts until the entries of all caches have `limit` bytes; nil without a budget of the
  /// store.
  func shortage(ofStoreAbove limit: Int) -> Shortage? {
    whole.map { Shortage(budget: $0.budget, limit: limit, growth: 0, excess: 0) }
  }

  /// Whether a budget is the store's, and not a cache's.
  func isOfStore(_ budget: Int) -> Bool { budget == whole?.budget }

  /// Whether a cache with this budget, or none, is counted.
  func counts(byteBudget: Int?) -> Bool { byteBudget != nil || whole != nil }

  /// The read counts for a cache with this budget; nil if it is not counted.
  func recentReads(byteBudget: Int?) -> RecentReads? {
    whole?.recentReads ?? byteBudget.map(RecentReads.init)
  }

  /// Runs an eviction: one at a time.
  func withTurn<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
    try turn.withLock { _ throws(StoreError) in try body() }
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
        name: name.text, id: registration.id, keyKind: KeyKind(code: registration.keyKind),
        lifetime: registration.lifetime, recentReads: whole?.recentReads,
        budgets: [whole?.budget].compactMap(\.self))
      let key = Metadata.bytes(cache.id)
      if let value = try context.get(key), let bytes = Metadata.count(in: value, under: key) {
        accounting.open(Accounting.Account(cache, bytes: bytes))
      } else if whole != nil {
        try count(cache, in: context)
      }
    }
  }

  /// Starts, or stops, to count a cache that is being opened.
  ///
  /// Nothing is written to the cache while it runs.
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
    let own = cache.byteBudget.map { accounting.addBudget($0) }
    let counted = CountedCache(
      name: cache.name, id: registration.id, keyKind: KeyKind(code: registration.keyKind),
      lifetime: registration.lifetime, recentReads: cache.recentReads,
      budgets: [whole?.budget, own].compactMap(\.self),
      residents: cache.memory?.residents)
    if let bytes = isNew ? 0 : known.flatMap({ $0.isExact ? $0.bytes : nil }) {
      accounting.open(Accounting.Account(counted, bytes: bytes))
    } else {
      accounting.close([registration.id])
      try count(counted, in: context)
    }
  }

  /// Counts the bytes of a cache.
  private func count(_ cache: CountedCache, in context: StoreContext) throws(StoreError) {
    let held: (bytes: Int, isComplete: Bool)
    do throws(StoreError) {
      held = try KeySpace.recordBytes(ofCache: cache.id, in: context.engine)
    } catch {
      throw error.naming(cache: cache.name)
    }
    let account = Accounting.Account(cache, bytes: held.bytes, isExact: held.isComplete)
    accounting.open(account)
    guard account.isExact else { return }
    var rows = WriteBatch()
    rows.putCount(held.bytes, under: Metadata.bytes(cache.id))
    try context.writeMetadata(&rows, cache: cache.name)
  }
}
