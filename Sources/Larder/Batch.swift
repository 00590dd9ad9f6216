import Foundation
import LarderEngine

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

  private let store: Store
  private var savedAt: Date?
  private(set) var failure: StoreError?
  private(set) var write = PendingWrite()
  private(set) var changes = ChangeNotes()
  private(set) var clearings: [Clearing] = []

  init(store: Store) { self.store = store }

  /// Saves a value under a key with the current date, replacing the entry of the key.
  ///
  /// As in ``Cache/save(_:for:validator:durability:)``, an entry of a newer schema version is not
  /// replaced, unless the batch removes it first.
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded.
  ///   - cache: A cache of the store.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  public mutating func save<Key, Value>(
    _ value: Value, for key: Key, in cache: borrowing Cache<Key, Value>,
    validator: Validator? = nil
  ) {
    let now = savedAt ?? store.context.clock.now()
    savedAt = now
    let core = cache.core
    record(cache) { batch throws(StoreError) in
      let id = batch.id(of: core)
      try core.refuseNewerEntry(of: key, id: id, after: batch.write.rows)
      try core.add(
        value, for: key, id: id, savedAt: now, validator: validator, to: &batch.write)
      batch.changes.add(.save, core.counts)
    }
  }

  /// Removes the entry of a key, if there is one.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - cache: A cache of the store.
  public mutating func remove<Key, Value>(_ key: Key, from cache: borrowing Cache<Key, Value>) {
    let core = cache.core
    record(cache) { batch throws(StoreError) in
      let recordKey = try core.recordKey(of: key, id: batch.id(of: core))
      batch.write.rows.remove(recordKey.bytes.span.bytes)
      batch.changes.add(.removal, core.counts)
    }
  }

  /// Removes every entry of a cache, including those saved earlier in this batch.
  ///
  /// - Parameter cache: A cache of the store.
  public mutating func removeAll<Key, Value>(from cache: borrowing Cache<Key, Value>) {
    let core = cache.core
    record(cache) { batch in
      let id = batch.store.newCacheID()
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
