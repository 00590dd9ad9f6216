import Foundation
import HTTPTypes
import Larder
import Synchronization

// Loads that the cache makes, with `entry(for:loading:load:)`: they share requests, and can return
// stale values and confirm entries.

/// How a load that needs the server may use the entry that the cache has.
private struct EntryUse {
  var isRefreshed = false
  /// If the server is in trouble, until this date; nil for not at all.
  var endForServerErrors: Date?
  /// If the server fails in any way, or takes too long.
  var isForFailures = false
}

extension Loader {
  /// Loads a value with `entry(for:loading:load:)` of the cache; nil if the cache cannot be used.
  func shared(
    _ input: Input, _ maxAge: MaxAge?, in cache: Cache<Key, Value>
  ) async throws -> Loaded<Value>? {
    try Task.checkCancellation()
    let key = key(input)
    var (found, cacheFailure): (FoundEntry<Value>?, StoreError?)
    // By the lifetime and the policy alone, the cache judges its entry itself.
    let needsEntry = policy.order == .remoteThenCache || policy.httpCaching
    if needsEntry, policy.order != .remoteOnly {
      switch try await find(key, maxAge, in: cache) {
      case .success(let entry): found = entry
      case .failure(let error): cacheFailure = error
      }
      if policy.order == .cacheThenRemote, let found, found.isFresh {
        return Loaded(cached: found.entry)
      }
    }
    let use = use(of: found, in: cache)
    let leftOut = Mutex(0)
    do {
      let loaded = try await cache.entry(for: key, loading: loading(use, maxAge)) { previous in
        try await reply(to: input, previous, in: cache) { count in leftOut.withLock { $0 = count } }
      }
      guard let loaded else { return nil }
      if let failure = loaded.loadFailure as? RequestFailure, !use.isForFailures {
        // The request may have taken longer than the window was open.
        let isOver = use.endForServerErrors.map { cache.store.clock.now() >= $0 } ?? false
        if isOver || !failure.isServerError { throw failure }
      }
      return delivered(loaded, found, leftOut: leftOut.withLock { $0 })
    } catch let failure as RequestFailure {
      let isFirst = policy.order == .remoteThenCache
      throw FeedError.remote(failure.reason, cache: isFirst ? cacheFailure : nil)
    } catch is StoreError {
      return nil
    }
  }

  /// How the load may use an entry that is not fresh, or that it would rather have from the server.
  ///
  /// Without an entry that was read, it is as the policy says: the cache judges the entry.
  private func use(of found: FoundEntry<Value>?, in cache: Cache<Key, Value>) -> EntryUse {
    guard policy.order != .remoteOnly else { return EntryUse() }
    var use = EntryUse()
    let mark = policy.httpCaching ? StoredMark(found?.entry.validator) : StoredMark()
    let isPast = found?.isWithinLifetime == false
    if !(isPast && mark.mustRevalidate) {
      use.isForFailures = policy.servesStale != .never || found?.isFresh == true
      use.isRefreshed = policy.servesStale == .whileRefreshing
      if isPast, let entry = found?.entry,
        let freshEnd = (entry.lifetime ?? cache.lifetime).freshEnd(from: entry.savedAt)
      {
        func end(_ window: Int?) -> Date? {
          let end = window.map { mark.end(ofWindow: $0, from: freshEnd) }
          return end.flatMap { entry.readAt < $0 ? $0 : nil }
        }
        use.endForServerErrors = end(mark.staleIfError)
        if end(mark.staleWhileRevalidate) != nil { use.isRefreshed = true }
      }
    }
    if policy.order == .remoteThenCache { use.isRefreshed = false }
    return use
  }

  private func loading(_ use: EntryUse, _ maxAge: MaxAge?) -> Loading {
    var loading = Loading()
    loading.maxAge = policy.order == .cacheThenRemote ? maxAge : .seconds(0)
    loading.staleWhileRevalidate = use.isRefreshed
    if use.isForFailures || use.endForServerErrors != nil { loading.staleIfError = .unbounded }
    if use.isForFailures { loading.softTimeout = policy.softTimeout.map { max(.zero, $0) } }
    return loading
  }

  private func delivered(
    _ loaded: LoadedEntry<Value>, _ found: FoundEntry<Value>?, leftOut: Int
  ) -> Loaded<Value> {
    if loaded.origin == .loaded {
      return Loaded(
        value: loaded.value, source: .remote, isSaved: loaded.isSaved,
        saveFailure: loaded.saveFailure, leftOut: leftOut)
    }
    // For a load that asks the server first, every entry is stale.
    let isStale =
      policy.order == .cacheThenRemote ? loaded.isStale : loaded.isStale && found?.isFresh == false
    return Loaded(
      value: loaded.value, source: .cache, isRevalidated: loaded.savedAt == nil, isStale: isStale,
      isRefreshing: loaded.isRefreshing, savedAt: loaded.savedAt, age: loaded.age,
      isSaved: loaded.isSaved, saveFailure: loaded.saveFailure,
      remoteFailure: (loaded.loadFailure as? RequestFailure)?.reason)
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

extension Duration {
  /// A hundred years.
  fileprivate static var unbounded: Duration { .seconds(3_155_760_000) }
}
