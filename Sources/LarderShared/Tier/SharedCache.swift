package import Larder

/// A cache that many machines share: what one of them loads or saves, the others find.
///
/// ```swift
/// let tier = try SharedTier(namespace: "shop", makeLink: link)
/// let shared = try SharedCache(profiles, in: tier)
/// let profile = try await shared.value(for: id) { try await fetch(id) }
/// ```
///
/// The cache's own synchronous reads return what this machine has. Its changes throw.
package struct SharedCache<Key: CacheKey, Value: Sendable>: Sendable {
  private let cache: Cache<Key, Value>
  private let tier: CacheTier

  /// Shares a cache, until its store is closed.
  ///
  /// - Parameters:
  ///   - cache: A cache whose reads do not restart lifetimes, and whose entries have no tags.
  ///   - tier: The tier. Its other machines have a cache with the same name, and values of the same
  ///     coder and schema.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the cache is shared already, or cannot be.
  package init(_ cache: Cache<Key, Value>, in tier: SharedTier) throws {
    let keys = try SharedKeys(namespace: tier.namespace, cache: cache.name)
    (self.cache, self.tier) = (cache, CacheTier(keys: keys, tier: tier))
    tier.add(try cache.share(in: self.tier), of: keys)
  }

  /// Returns the value of a key: from memory, the disk or the tier, or loaded and saved in all.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded; with the names of cache and namespace up to
  ///     ``SharedKeys/limit`` bytes.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Returns the value to save.
  /// - Returns: The value.
  /// - Throws: As `Cache.value(for:loading:load:)`. No call fails because the tier does.
  nonisolated(nonsending) package func value(
    for key: Key, loading: Loading? = nil, load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let load: Cache<Key, Value>.Load = { _ in .value(try await load()) }
    if let entry = try await entry(for: key, loading: loading, load: load) { return entry.value }
    // Absent by another caller's closure; this one always has a value.
    while true {
      if let entry = try await cache.refresh(key, loading: loading, load: load) {
        return entry.value
      }
    }
  }

  /// Returns the value of a key, and how it was obtained; nil if the load replied that there is
  /// none.
  ///
  /// - Parameters:
  ///   - key: As for ``value(for:loading:load:)``.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Is passed the entry of the machine, which may be outdated, for a conditional
  ///     request. A reply with tags is returned and not saved.
  /// - Returns: The value.
  /// - Throws: As ``value(for:loading:load:)``.
  nonisolated(nonsending) package func entry(
    for key: Key, loading: Loading? = nil, load: @escaping Cache<Key, Value>.Load
  ) async throws -> LoadedEntry<Value>? {
    if let entry = try cache.confirmedEntry(for: key, loading: loading) { return entry }
    return try await cache.sharedEntry(for: key, loading: loading, load: load)
  }

  /// Saves a value in the tier, and then on this machine.
  ///
  /// Loads of the key that are under way, on any machine, do not replace it.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: As for ``value(for:loading:load:)``.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  /// - Returns: Whether the tier has it.
  /// - Throws: As `Cache.save(_:for:)`, if the value was not saved on this machine. The tier may
  ///   have it then. `CancellationError` if the task was cancelled before; then nothing was
  ///   changed.
  @discardableResult package func save(
    _ value: Value, for key: Key, lifetime: Lifetime? = nil, validator: Validator? = nil
  ) async throws -> SharedOutcome {
    try Task.checkCancellation()
    return SharedOutcome(
      try await cache.saveShared(
        value, for: key, lifetime: lifetime, validator: validator, in: tier))
  }

  /// Removes an entry from the tier, and then from this machine.
  ///
  /// For 30 s, loads of the key that were under way, on any machine, do not bring it back.
  ///
  /// - Parameter key: As for ``value(for:loading:load:)``.
  /// - Returns: Whether the tier knows.
  /// - Throws: As `Cache.remove(_:)`, if it was not removed from this machine. It may be removed
  ///   from the tier then. `CancellationError` if the task was cancelled before; then nothing was
  ///   changed.
  @discardableResult package func remove(_ key: Key) async throws -> SharedOutcome {
    try Task.checkCancellation()
    return SharedOutcome(try await cache.removeShared(key, in: tier))
  }
}

/// Where a change was made.
package enum SharedOutcome: Sendable {
  /// In the tier and on this machine.
  case shared
  /// On this machine; other machines go on as before, or, if the failure is
  /// ``SharedFailure/outcomeUnknown(_:)``, perhaps not.
  case localOnly(any Error)

  fileprivate init(_ failure: (any Error)?) {
    self = failure.map { .localOnly($0) } ?? .shared
  }
}
