import Foundation
import HTTPTypes
import Larder
import Synchronization

// Loads that the cache makes, with `entry(for:loading:load:)`: they share requests, and can return
// stale values and confirm entries.

extension Loader {
  /// Loads a value with `entry(for:loading:load:)` of the cache; nil if the cache cannot be used.
  ///
  /// Throws only ``RemoteFailure`` and `CancellationError`.
  func shared(
    _ input: Input, _ loading: Loading, in cache: Cache<Key, Value>
  ) async throws -> Loaded<Value>? {
    let key = key(input)
    let isCacheFirst = policy.order == .cacheThenRemote
    var found: FoundEntry<Value>?
    // For its lifetime and the options alone, the cache judges an entry itself.
    let needsEntry =
      isCacheFirst
      ? policy.httpCaching : policy.order == .remoteThenCache && loading.softTimeout != nil
    if needsEntry, case .success(let entry) = try await find(key, loading) { found = entry }
    if isCacheFirst, loading.refreshAhead == nil, let found, !found.isStale {
      return found.loaded()
    }
    let leftOut = Mutex(0)
    do {
      let loaded = try await cache.entry(for: key, loading: options(loading, found)) { previous in
        try await reply(to: input, previous, in: cache) { count in leftOut.withLock { $0 = count } }
      }
      return loaded.map { delivered($0, found, leftOut: leftOut.withLock { $0 }) }
    } catch let failure as RemoteFailure {
      throw failure
    } catch let error as LoadTimeout {
      throw RemoteFailure(.connectivity, underlying: error)
    } catch {
      try Task.checkCancellation()
      // The cache cannot be used, or the load of another part of the program, which it joined, has
      // failed.
      return nil
    }
  }

  /// The options of a call of the cache.
  private func options(_ loading: Loading, _ found: FoundEntry<Value>?) -> Loading {
    var options = loading
    // The requests of a load are retried one by one.
    options.retries = Loading.Retries(extra: 0)
    if policy.order != .cacheThenRemote {
      // After a failure, `load` reads the cache: for these options, each entry is stale.
      (options.maxAge, options.staleIfError) = (.seconds(0), nil)
      options.staleWhileRevalidate = false
      if policy.order == .remoteOnly { options.softTimeout = nil }
    } else if found?.isWithin(found?.mark.staleWhileRevalidate) == true {
      options.staleWhileRevalidate = true
    }
    if found?.isForbidden == true {
      (options.staleWhileRevalidate, options.staleIfError) = (false, nil)
      options.softTimeout = nil
    }
    return options
  }

  private func delivered(
    _ loaded: LoadedEntry<Value>, _ found: FoundEntry<Value>?, leftOut: Int
  ) -> Loaded<Value> {
    // For a load that asks the server first, each entry is stale.
    let isStale =
      loaded.isStale && (policy.order == .cacheThenRemote || found?.isStale == true)
    let entry = LoadedEntry(
      loaded.value, origin: loaded.origin, savedAt: loaded.savedAt, age: loaded.age,
      isStale: isStale, isRefreshing: loaded.isRefreshing, isSaved: loaded.isSaved,
      saveFailure: loaded.saveFailure,
      loadFailure: loaded.loadFailure as? RemoteFailure)
    return Loaded(entry, leftOut: loaded.origin == .loaded ? leftOut : 0)
  }
}

// MARK: - The server's reply

extension Loader {
  /// Requests the value, and decides what the cache does with it.
  private func reply(
    to input: Input, _ previous: Previous<Value>?, in cache: Cache<Key, Value>,
    leftOut: (Int) -> Void
  ) async throws -> LoadReply<Value> {
    let usesHeaders = policy.httpCaching && policy.savesRemote
    let mark = usesHeaders ? StoredMark(previous?.validator) : StoredMark()
    var sender = sender
    sender.condition = mark.condition
    do {
      let mapped = try await endpoint.load(input, sender)
      leftOut(mapped.leftOut)
      guard policy.savesRemote else { return .unsaved(mapped.value) }
      guard usesHeaders else { return .value(mapped.value) }
      let rule = StoringRule(mapped.exchanges, now: cache.store.clock.now())
      guard rule.isStorable else { return .unsaved(mapped.value) }
      return .value(
        mapped.value, lifetime: rule.mark.lifetime(in: cache.lifetime), validator: rule.mark.saved)
    } catch let notModified as NotModified {
      let (exchange, now) = (notModified.exchange, cache.store.clock.now())
      let hasCacheControl = exchange.response.headerFields[.cacheControl] != nil
      let updated = mark.updated(
        by: StoringRule(exchange, now: now).mark, hasCacheControl: hasCacheControl)
      // Without a lifetime and new windows, the entry keeps its own lifetime.
      let keepsLifetime = updated.maxAge == nil && !hasCacheControl
      return .unchanged(
        lifetime: keepsLifetime ? nil : updated.lifetime(in: cache.lifetime),
        validator: updated.saved)
    }
  }
}
