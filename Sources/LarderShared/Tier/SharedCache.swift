public import Larder

/// A cache that many machines share: what one of them loads or saves, the others find.
///
/// ```swift
/// let tier = try SharedTier(.server(host: "cache-1"), namespace: "shop")
/// let shared = try SharedCache(profiles, in: tier)
/// let profile = try await shared.value(for: id) { try await fetch(id) }
/// ```
///
/// A read looks in memory, then on the disk, then in the tier, and then loads, if it may. What it
/// returns is *confirmed* if the tier is known to have had it at most a lease ago; see
/// ``SharedTier``. No call fails because the server cannot be asked: then reads do what
/// ``SharedTier/Options/whenDegraded`` says, and changes are made on this machine, which removes
/// the old value from the tier as soon as the tier can be asked.
///
/// The cache itself can still be used: its loads ask the tier, too, and its synchronous reads
/// return what this machine has. Changes that the other machines would not hear of throw
/// `StoreError.invalidArgument`: its `save`, `touch`, `update`, `remove` and ranges.
public struct SharedCache<Key: CacheKey, Value: Sendable>: Sendable {
  private let cache: Cache<Key, Value>
  private let tier: CacheTier

  /// Shares a cache, until its store is closed.
  ///
  /// - Parameters:
  ///   - cache: A cache whose reads do not restart lifetimes, and whose entries have no tags.
  ///   - tier: The tier. Its other machines have a cache with the same name, and values of the same
  ///     coder and schema.
  /// - Throws: `StoreError.invalidArgument` if the cache is shared already, its reads restart
  ///   lifetimes, it has entries with tags, or its store is read-only or has a clock other than
  ///   `SystemClock`; as opening a cache.
  /// - Complexity: One lookup, for changes that the tier has not heard of.
  public init(_ cache: Cache<Key, Value>, in tier: SharedTier) throws {
    let keys = try SharedKeys(namespace: tier.namespace, cache: cache.name)
    (self.cache, self.tier) = (cache, CacheTier(keys: keys, tier: tier))
    tier.add(try cache.share(in: self.tier), of: keys)
  }

  /// Returns the value of a key from memory, the disk or the tier; does not load it.
  ///
  /// - Parameter key: Up to 64 KiB encoded; with the names of cache and namespace up to 1,024
  ///   bytes, in which `{`, `}` and `%` count three times.
  /// - Returns: The value; nil if none of them has a fresh one.
  /// - Throws: As ``entry(for:)``.
  /// - Complexity: As ``entry(for:)``.
  nonisolated(nonsending) public func value(for key: Key) async throws -> Value? {
    if let value = try cache.confirmedValue(for: key, loading: nil) { return value }
    return try await missedValue(for: key)
  }

  nonisolated(nonsending) private func missedValue(for key: Key) async throws -> Value? {
    try await cache.sharedEntry(for: key, in: tier)?.value
  }

  /// Returns the value of a key from memory, the disk or the tier, and how it was obtained; does
  /// not load it, and does not wait for a load.
  ///
  /// - Parameter key: As for ``value(for:)``.
  /// - Returns: The value; nil if none of them has a fresh one.
  /// - Throws: `StoreError.invalidArgument` for a key that is too long, `StoreError.io` if the disk
  ///   cannot be read, `StoreError.closed` if the store is closed. `CancellationError` if the task
  ///   was cancelled before.
  /// - Complexity: A lookup in memory; else one on the disk and a question to the server, for 8
  ///   bytes if the disk has a copy, and for the value if that is not what the server has.
  nonisolated(nonsending) public func entry(
    for key: Key
  ) async throws -> LoadedEntry<Value>? {
    if let entry = try cache.confirmedEntry(for: key, loading: nil) { return entry }
    return try await cache.sharedEntry(for: key, in: tier)
  }

  /// Returns the value of a key from memory, the disk or the tier; loads it, and saves it in all of
  /// them, if none has a fresh one.
  ///
  /// As `Cache.value(for:loading:load:)`, with the tier between the disk and the closure: a key is
  /// loaded once at a time on each machine. A loaded value does not replace what another machine
  /// has saved or removed since the load began; the caller gets it nevertheless.
  ///
  /// - Parameters:
  ///   - key: As for ``value(for:)``.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Returns the value to save, at most 32 MiB encoded.
  /// - Returns: The value.
  /// - Throws: As `Cache.value(for:loading:load:)`.
  /// - Complexity: As ``entry(for:)``; for a load, one encode, one write to the server and one
  ///   append.
  nonisolated(nonsending) public func value(
    for key: Key, loading: Loading? = nil, load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    if let value = try cache.confirmedValue(for: key, loading: loading) { return value }
    return try await cache.missedValue(for: key, loading: loading, isTimed: false, load: load)
  }

  /// Returns the value of a key as ``value(for:loading:load:)`` does, and how it was obtained.
  ///
  /// ```swift
  /// let entry = try await shared.entry(for: url) { previous in
  ///   let reply = try await get(url, ifNoneMatch: previous?.validator)
  ///   return reply.status == 304
  ///     ? .unchanged : .value(reply.body, validator: Validator(reply.etag))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: As for ``value(for:)``.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Is passed the entry of this machine or of the tier, which may be outdated, for a
  ///     conditional request. A reply with tags is returned and not saved.
  /// - Returns: The value; nil if the load replied `LoadReply.absent`.
  /// - Throws: As ``value(for:loading:load:)``.
  /// - Complexity: As ``value(for:loading:load:)``.
  nonisolated(nonsending) public func entry(
    for key: Key, loading: Loading? = nil, load: @escaping Cache<Key, Value>.Load
  ) async throws -> LoadedEntry<Value>? {
    if let entry = try cache.confirmedEntry(for: key, loading: loading) { return entry }
    return try await cache.missedEntry(for: key, loading: loading, load: load)
  }

  /// Returns the values of several keys, and loads those of which neither memory, the disk nor the
  /// tier has a fresh one with one call.
  ///
  /// The server is asked for all keys that are not in memory at once.
  ///
  /// - Parameters:
  ///   - keys: As for ``value(for:)``; a key may be repeated.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Is passed the keys to load, each of them once, in their order. It returns one reply
  ///     for each key, in the same order.
  /// - Returns: For each key, in their order, its value; nil if a load replied
  ///   `LoadReply.absent`.
  /// - Throws: As `Cache.values(for:loading:load:)`.
  /// - Complexity: For each key as ``value(for:loading:load:)``.
  nonisolated(nonsending) public func values(
    for keys: [Key], loading: Loading? = nil,
    load: @escaping @Sendable ([Key]) async throws -> [LoadReply<Value>]
  ) async throws -> [Value?] {
    var entries = try keys.map { try cache.confirmedEntry(for: $0, loading: loading) }
    let missing = entries.indices.filter { entries[$0] == nil }
    if !missing.isEmpty {
      let found = try await cache.sharedEntries(
        for: missing.map { keys[$0] }, loading: loading, load: load)
      for (index, entry) in zip(missing, found) { entries[index] = entry }
    }
    return entries.map { $0?.value }
  }

  /// Saves a value in the tier, and then on this machine.
  ///
  /// ```swift
  /// if case .localOnly(let reason) = try await shared.save(profile, for: id) {
  ///   logger.warning("other machines have the old profile for a while: \(reason)")
  /// }
  /// ```
  ///
  /// Loads of the key that are under way, on any machine, do not replace it.
  ///
  /// - Parameters:
  ///   - value: The value. If it has more than ``SharedTier/Options/largestRecord`` bytes encoded,
  ///     it stays on this machine.
  ///   - key: As for ``value(for:)``.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  /// - Returns: Whether the tier has it.
  /// - Throws: As `Cache.save(_:for:)`, if the value was not saved on this machine. The tier may
  ///   have it then. `CancellationError` if the task was cancelled before; then nothing was
  ///   changed.
  /// - Complexity: One encode, one write to the server and one append.
  @discardableResult public func save(
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
  /// - Parameter key: As for ``value(for:)``.
  /// - Returns: Whether the tier knows.
  /// - Throws: As `Cache.remove(_:)`, if it was not removed from this machine. It may be removed
  ///   from the tier then. `CancellationError` if the task was cancelled before; then nothing was
  ///   changed.
  /// - Complexity: One write to the server and one append.
  @discardableResult public func remove(_ key: Key) async throws -> SharedOutcome {
    try Task.checkCancellation()
    return SharedOutcome(try await cache.removeShared(key, in: tier))
  }
}

/// Where a change was made.
public enum SharedOutcome: Sendable, Hashable {
  /// In the tier and on this machine.
  case shared
  /// On this machine alone.
  ///
  /// Other machines go on as before, or, if the failure is ``SharedFailure/outcomeUnknown(_:)``,
  /// perhaps not. As soon as the tier can be asked again, it removes what it has under the key.
  case localOnly(SharedFailure)
}

extension SharedOutcome {
  fileprivate init(_ failure: (any Error)?) {
    switch failure {
    case nil: self = .shared
    case let failure as SharedFailure: self = .localOnly(failure)
    case let other?: self = .localOnly(.unreachable("\(other)"))
    }
  }
}
