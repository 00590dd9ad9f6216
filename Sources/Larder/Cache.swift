import Foundation
import LarderEngine

/// A named, typed part of a store.
///
/// ```swift
/// let genres = try store.cache("genres", of: [Genre].self)   // fresh for 7 days, String keys
/// try genres.save(list, for: "all")                          // stamped with the date
/// let list = try genres.value(for: "all")                    // nil when missing or too old
/// ```
///
/// A cache is a light value: copy it, keep it in several places, use it from any thread. Each call
/// is atomic by itself; to change several entries together, use
/// ``Store/write(durability:_:)``. Reading changes no entry and no lifetime. Two caches of
/// one store never see each other's entries.
///
/// Reads and writes wait for the disk. In code that runs on Swift's cooperative pool (`async`
/// functions, actors) a write that LevelDB delays would hold up other tasks: move it to a thread of
/// your own where that matters.
public struct Cache<Key: CacheKey, Value: Sendable>: Sendable {
  let store: Store
  let core: CacheCore<Value>

  /// The name that the cache was opened with.
  public var name: String { core.name }
}

// MARK: - Reading

extension Cache {
  /// Reads the value for a key while it is fresh; nil when it is missing, stale or expired.
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: The value; ``lookup(for:maxAge:)`` tells the kinds of nil apart.
  /// - Throws: ``StoreError/undecodable(key:underlying:)``,
  ///   ``StoreError/newerSchema(found:known:)``, ``StoreError/corrupt(cache:key:file:)`` or
  ///   ``StoreError/incompatible(_:)`` when there is an entry and it cannot be read; it is kept.
  ///   ``StoreError/io(_:)``, ``StoreError/closed``, ``StoreError/invalidArgument(_:)`` for a key
  ///   over its limit.
  /// - Complexity: One point lookup and one decode.
  public func value(for key: Key) throws -> Value? {
    var outcome = ReadOutcome.failed
    defer { core.counts.reads.add(outcome) }
    let recordKey = try core.recordKey(of: key, id: core.id)
    var buffer = ValueBuffer(from: core.spareBuffer)
    guard try core.get(recordKey, into: &buffer) else {
      outcome = .missing
      return nil
    }
    return try core.freshValue(in: buffer, under: recordKey, outcome: &outcome)
  }

  /// Reads a value and what is known about it, while it is fresh; nil as in ``value(for:)``.
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: The entry, or nil.
  /// - Throws: As ``value(for:)``.
  /// - Complexity: One point lookup and one decode.
  public func entry(for key: Key) throws -> Entry<Value>? {
    switch try lookup(for: key) {
    case .fresh(let entry): entry
    case .stale, .expired, .missing: nil
    }
  }

  /// Reads what the cache has for a key, and says whether it is fresh, stale, expired or missing.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - maxAge: How old the entry may be for this call; nil leaves it to the cache's lifetime, and
  ///     is the default. It can only shorten what the lifetime keeps; at that age and beyond the
  ///     answer is ``Lookup/expired(_:)``.
  /// - Returns: One of the four answers.
  /// - Throws: As ``value(for:)``.
  /// - Complexity: One point lookup, and one decode unless the answer is expired or missing.
  public func lookup(for key: Key, maxAge: MaxAge? = nil) throws -> Lookup<Value> {
    var outcome = ReadOutcome.failed
    defer { core.counts.reads.add(outcome) }
    let recordKey = try core.recordKey(of: key, id: core.id)
    var buffer = ValueBuffer(from: core.spareBuffer)
    guard try core.get(recordKey, into: &buffer) else {
      outcome = .missing
      return .missing
    }
    let found = try buffer.withBytes { bytes throws(StoreError) in
      let record = try core.record(bytes, under: recordKey.bytes.span.bytes)
      core.marks?.mark(recordKey.bytes.span.bytes)
      return try core.lookup(
        record, in: bytes, under: recordKey.bytes.span.bytes, at: core.clock.now(),
        maxAge: maxAge)
    }
    outcome = ReadOutcome(found)
    return found
  }
}

// MARK: - Writing

extension Cache {
  /// Saves a value under a key, stamped with the date, in place of what was there.
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded.
  ///   - durability: What the entry survives; nil, the default, leaves it to the store's
  ///     ``Store/Options/durability``. It belongs to this value: a later save of the key that asks
  ///     for less gives it up.
  /// - Throws: ``StoreError/encoding(key:underlying:)`` or ``StoreError/invalidArgument(_:)``
  ///   before anything is written; ``StoreError/newerSchema(found:known:)`` or
  ///   ``StoreError/incompatible(_:)`` when the entry of the key is a newer program's, which is
  ///   kept, unless the cache was opened with `overwritesNewer: true`; ``StoreError/diskFull`` or
  ///   ``StoreError/io(_:)`` when the write failed, and then the key holds the old value or the new
  ///   one;
  ///   ``StoreError/writesDisabled(cause:)`` after a failure that is not over, and nothing was
  ///   written; ``StoreError/closed``.
  /// - Complexity: One encode and one append, shared with others who write at once. No fsync but
  ///   for ``Durability/powerLoss``. No read, unless the cache was opened with a newer schema
  ///   version before: then one point lookup.
  public func save(
    _ value: Value, for key: Key, durability: Durability? = nil
  ) throws {
    var write = PendingWrite()
    let id = core.id
    try core.refuseNewerEntry(of: key, id: id, after: write.rows)
    try core.add(value, for: key, id: id, savedAt: core.clock.now(), to: &write)
    try core.context.commit(&write, durability)
    core.counts.saves.add()
  }

  /// Removes the entry of a key.
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: Whether there was an entry, in whatever state.
  /// - Throws: As ``save(_:for:durability:)``, without encoding.
  /// - Complexity: One point lookup and, if there was an entry, one append.
  @discardableResult public func remove(_ key: Key) throws -> Bool {
    let recordKey = try core.recordKey(of: key, id: core.id).bytes
    var write = PendingWrite()
    write.rows.remove(recordKey.span.bytes, if: write.rows.require(recordKey, .present))
    let isRemoved = try core.context.commit(&write).failed.isEmpty
    core.counts.removals.add()
    return isRemoved
  }

  /// Removes every entry of the cache.
  ///
  /// The cache goes on under a new number on disk, so this does not take longer with more entries;
  /// what the old ones occupy is given back in slices, now and each time the store is opened. A
  /// save that is under way on another thread meanwhile counts as having come before.
  ///
  /// - Throws: As ``save(_:for:durability:)``, without encoding.
  /// - Complexity: One append and one fsync; then at most 10,000 deletions.
  public func removeAll() throws {
    try store.write { $0.removeAll(from: self) }
  }

  /// Stamps the entry of a key as saved now.
  ///
  /// Its payload is neither decoded nor encoded again.
  ///
  /// It is for answers that say "what you have is still right", such as HTTP's 304; an expired
  /// entry comes to life again.
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: False if there is no entry, or if it was changed by somebody else meanwhile: then
  ///   nothing was written.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)``, ``StoreError/newerSchema(found:known:)`` or
  ///   ``StoreError/incompatible(_:)`` when the entry cannot be read; else as
  ///   ``save(_:for:durability:)``.
  /// - Complexity: One point lookup, a second one if anything was written meanwhile, and one
  ///   append.
  @discardableResult public func touch(_ key: Key) throws -> Bool {
    let recordKey = try core.recordKey(of: key, id: core.id)
    var buffer = ValueBuffer()
    var write = PendingWrite()
    write.rows.writeCountBeforeReading = core.context.engine.writeCount
    guard try core.get(recordKey, into: &buffer) else { return false }
    try buffer.withBytes { bytes throws(StoreError) in
      let record = try core.record(bytes, under: recordKey.bytes.span.bytes)
      let same = write.rows.require(
        recordKey.bytes, .unchanged(since: record.sequence, in: Record.stamp))
      core.addRestamped(
        bytes, under: recordKey, savedAt: core.clock.now(), to: &write, if: same)
    }
    return try core.context.commit(&write).failed.isEmpty
  }
}
