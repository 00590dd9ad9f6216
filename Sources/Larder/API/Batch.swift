import Foundation

/// Changes that ``Store/write(durability:_:)`` applies together.
///
/// Changes take effect in the order in which they are made: the last one of a key wins. All saves
/// of a batch have the same date.
public struct Batch: ~Copyable {
  /// A cache that the batch clears, and the new ids it receives; the last one stays in effect.
  struct Clearing {
    let cache: any OpenCache
    var ids: [UInt64]
  }

  /// A condition that the whole batch depends on.
  struct Requirement {
    let cache: String
    let key: String
    /// Reads the entry and makes the write depend on it; returns false if the condition does not
    /// hold.
    let add: (inout WriteBatch) throws(StoreError) -> Bool

    func conflict(tries: Int) -> StoreError { .conflict(cache: cache, key: key, tries: tries) }
  }

  private let store: Store
  private var savedAt: Date?
  private(set) var failure: StoreError?
  private(set) var write = WriteBatch()
  private(set) var changes = ChangeNotes()
  private(set) var clearings: [Clearing] = []
  private(set) var requirements: [Requirement] = []

  init(store: Store) { self.store = store }

  /// Saves a value under a key with the current date, replacing the entry of the key.
  ///
  /// ```swift
  /// try store.write { batch in
  ///   for genre in list { batch.save(genre, for: genre.id, in: byID) }
  /// }
  /// ```
  ///
  /// An entry of a newer schema version is not replaced, unless the batch removes it first: see
  /// ``Cache/save(_:for:lifetime:validator:tags:durability:)``.
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded.
  ///   - cache: A cache of the store.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  ///   - tags: Up to 16, of 1 to 64 bytes of UTF-8 each; none by default.
  public mutating func save<Key, Value>(
    _ value: Value, for key: Key, in cache: borrowing Cache<Key, Value>,
    lifetime: Lifetime? = nil, validator: Validator? = nil, tags: [String] = []
  ) {
    let now = savedAt ?? store.context.clock.now()
    savedAt = now
    let core = cache.core
    record(cache) { batch throws(StoreError) in
      let fields = try batch.store.fields(
        of: core, lifetime: lifetime, validator: validator, tags: tags, savedAt: now)
      let id = batch.id(of: core)
      try core.refuseNewerEntry(of: key, id: id, after: batch.write)
      try core.add(value, for: key, id: id, savedAt: now, fields: fields, to: &batch.write)
      batch.changes.add(.save, core.counts)
    }
  }

  /// Makes the whole batch depend on a condition.
  ///
  /// ```swift
  /// try store.write { batch in
  ///   batch.require(.unchanged(since: account), "alice", in: accounts)
  ///   batch.save(account.value - 10, for: "alice", in: accounts)
  ///   batch.save(order, for: id, in: orders)
  /// }
  /// ```
  ///
  /// The condition is about the entry before the batch, whatever the batch changes. It is checked
  /// once the batch is filled, together with its commit: no other change of the key comes between
  /// them. If it does not hold, nothing of the batch is written, and
  /// ``Store/write(durability:_:)`` throws ``StoreError/conflict(cache:key:tries:)``.
  ///
  /// - Parameters:
  ///   - condition: What must hold for the entry.
  ///   - key: Up to 64 KiB encoded.
  ///   - cache: A cache of the store.
  public mutating func require<Key, Value>(
    _ condition: Condition, _ key: Key, in cache: borrowing Cache<Key, Value>
  ) {
    let core = cache.core
    record(cache) { batch throws(StoreError) in
      let recordKey = try core.recordKey(of: key, id: core.id)
      let name = core.describe(recordKey.bytes.span.bytes)
      batch.requirements.append(
        Requirement(cache: core.name, key: name) { write throws(StoreError) in
          let found = try FoundEntry(try core.recordKey(of: key, id: core.id), in: core)
          guard condition.holds(for: found.record, found.freshness) else { return false }
          _ = found.requireUnchanged(&write)
          return true
        })
    }
  }

  /// Removes the entry of a key, if there is one.
  ///
  /// ```swift
  /// try store.write { batch in
  ///   batch.save(list, for: "new name", in: genres)
  ///   batch.remove("old name", from: genres)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - cache: A cache of the store.
  public mutating func remove<Key, Value>(_ key: Key, from cache: borrowing Cache<Key, Value>) {
    let core = cache.core
    record(cache) { batch throws(StoreError) in
      let recordKey = try core.recordKey(of: key, id: batch.id(of: core))
      batch.write.remove(recordKey.bytes.span.bytes)
      batch.changes.add(.removal, core.counts)
    }
  }

  /// Removes every entry of a cache, including those saved earlier in this batch.
  ///
  /// ```swift
  /// try store.write { batch in
  ///   batch.removeAll(from: genres)
  ///   batch.save(list, for: "all", in: genres)   // added after the removal
  /// }
  /// ```
  ///
  /// - Parameter cache: A cache of the store.
  public mutating func removeAll<Key, Value>(from cache: borrowing Cache<Key, Value>) {
    let core = cache.core
    record(cache) { batch throws(StoreError) in
      _ = try core.usableID()
      let id = try batch.store.newCacheID()
      if let index = batch.clearings.firstIndex(where: { $0.cache === core }) {
        batch.clearings[index].ids.append(id)
      } else {
        batch.clearings.append(Clearing(cache: core, ids: [id]))
      }
      batch.changes.add(.clear, core.counts)
    }
  }

  /// The id of the cache's keys from here on in the batch.
  private func id<Value>(of core: CacheCore<Value>) -> UInt64 {
    clearings.first { $0.cache === core }?.ids.last ?? core.id
  }

  /// Makes a change unless an earlier one failed; records its failure.
  private mutating func record<Key, Value>(
    _ cache: borrowing Cache<Key, Value>,
    _ change: (inout Batch) throws(StoreError) -> Void
  ) {
    guard failure == nil else { return }
    guard cache.store === store else {
      failure = .invalidArgument("cache \(cache.name) belongs to another store")
      return
    }
    do {
      try change(&self)
    } catch {
      failure = error
    }
  }
}
