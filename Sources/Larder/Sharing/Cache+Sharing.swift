import Foundation
import Synchronization

// What a tier's module needs of a cache.
extension Cache {
  /// Shares the cache in a tier, until the store is closed.
  ///
  /// From then on, loads ask the tier first, and changes that do not go through the tier throw
  /// ``StoreError/invalidArgument(_:)``.
  ///
  /// - Returns: The object to notify of changes by other machines, and then, in any case, that the
  ///   tier can be asked.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the cache is shared already, its reads restart
  ///   lifetimes, it has entries with tags, or the store is sealed or read-only; as opening a
  ///   cache.
  package func share(in tier: any RecordTier) throws -> any SharedPart {
    let id = try core.usableID()
    if let clock = tier.clock, type(of: clock) != type(of: core.clock) {
      throw StoreError.invalidArgument(
        """
        cache "\(name)" is of a store with a clock of its own, by which a lease of the tier could \
        run for too long; open the store with the clock \(type(of: clock))
        """)
    }
    if core.context.isReadOnly {
      throw StoreError.invalidArgument("cache \"\(name)\" is read-only and cannot be shared")
    }
    if core.context.seal != nil {
      throw StoreError.invalidArgument(
        """
        the values of cache "\(name)" are sealed on disk and a tier would get them plain, so it \
        cannot be shared
        """)
    }
    if core.slides != nil {
      throw StoreError.invalidArgument(
        "reads restart the lifetimes of cache \"\(name)\", so it cannot be shared")
    }
    if core.features.contains(.tags) { throw StoreError.tagsInSharedCache(name) }
    // Values of other machines may have lifetimes of their own.
    _ = try store.fields(
      of: core, lifetime: core.lifetime, validator: nil, tags: [], savedAt: core.clock.now())
    let sharing = CacheSharing(in: tier)
    guard core.sharing.storeIfNil(sharing) === sharing else {
      throw StoreError.invalidArgument("cache \"\(name)\" is shared already")
    }
    core.context.sharedCaches.add(name, id: id)
    core.unshared.store = store
    try core.readUnshared()
    return core
  }

  /// The value of a key as ``confirmedEntry(for:loading:)`` finds it.
  package func confirmedValue(for key: Key, loading: Loading?) throws -> Value? {
    try loading?.checkRanges()
    return loading?.isTimed ?? core.loading.isTimed
      ? try timedValue(for: key, loading: loading)
      : try core.residentValue(for: key, isConfirmed: true)
  }

  private func timedValue(for key: Key, loading: Loading?) throws -> Value? {
    try confirmedEntry(for: key, loading: loading)?.value
  }

  /// The fresh entry of a key that is in memory, if the tier is known to have it and no refresh is
  /// due; nil otherwise.
  package func confirmedEntry(for key: Key, loading: Loading?) throws -> LoadedEntry<Value>? {
    try loading?.checkRanges()
    let options = loading ?? core.loading
    guard let entry = try core.residentEntry(for: key, options, isConfirmed: true) else {
      return nil
    }
    var loaded = LoadedEntry(entry, age: entry.age)
    loaded.isConfirmed = true
    return loaded
  }

  /// Returns the entry of a key from the disk or the tier; nil if neither has a fresh one.
  nonisolated(nonsending) package func sharedEntry(
    for key: Key, in tier: any RecordTier
  ) async throws -> LoadedEntry<Value>? {
    try Task.checkCancellation()
    let key = try core.recordKey(of: key, id: core.id)
    return try await withTaskExecutorPreference(store.executor) {
      core.typed(try await core.sharedEntry(under: key, in: tier))
    }
  }

  /// Returns the entries of keys from the disk or the tier; loads the missing ones with one call.
  nonisolated(nonsending) package func sharedEntries(
    for keys: [Key], loading: Loading?,
    load: @escaping @Sendable ([Key]) async throws -> [LoadReply<Value>]
  ) async throws -> [LoadedEntry<Value>?] {
    try await core.loads.entries(for: try call(for: keys, loading, load)).map(core.typed)
  }

  /// Saves a value in the tier, and then on disk.
  ///
  /// - Returns: Why the tier does not have it; nil if it does.
  package func saveShared(
    _ value: Value, for key: Key, lifetime: Lifetime?, validator: Validator?,
    in tier: any RecordTier
  ) async throws -> (any Error)? {
    let fields = try store.fields(
      of: core, lifetime: lifetime, validator: validator, tags: [], savedAt: core.clock.now())
    let key = try core.recordKey(of: key, id: core.id)
    return try await withTaskExecutorPreference(store.executor) {
      try await core.saveShared(value, under: key, fields, in: tier)
    }
  }

  /// Removes an entry from the tier, and then from the disk.
  ///
  /// - Returns: Why the tier may still have it; nil if it does not.
  package func removeShared(_ key: Key, in tier: any RecordTier) async throws -> (any Error)? {
    let key = try core.recordKey(of: key, id: core.id)
    return try await withTaskExecutorPreference(store.executor) {
      try await core.removeShared(key, in: tier)
    }
  }
}
