import Foundation
public import Larder

/// Loads a feed's value from a server and a cache, in the order of its policy.
///
/// ```swift
/// let genres = try GenresLoader.genres(from: server, client: URLSessionClient(), store: store)
/// let loaded = try await genres.load()
/// show(loaded.value, from: loaded.origin, age: loaded.age)
/// ```
///
/// A loader is a small value without state: use it from any thread, for any number of concurrent
/// loads. Two loads make two requests, unless the policy lets them share one. A load reads and
/// saves, but never deletes; ``validate(maxAge:)`` does. A load waits for the disk on the store's
/// threads, as ``/Larder/Store/run(_:)`` does, and not on Swift's cooperative pool.
public struct Loader<Input: Sendable, Key: CacheKey, Value: Sendable>: Sendable {
  /// The cache that holds saved values; nil if the feed has no cache.
  ///
  /// Use it to read, save or remove entries without a load.
  public let cache: Cache<Key, Value>?

  /// The options of the loader's loads.
  ///
  /// Change the policy of a copy for a single load, for example to force a refresh.
  public var policy: LoadPolicy

  let endpoint: Endpoint<Input, Value>
  let client: any HTTPClient
  let key: @Sendable (Input) -> Key

  /// Makes a loader for a feed.
  ///
  /// - Parameters:
  ///   - endpoint: The request, and the mapping of its reply.
  ///   - client: The client that sends the request.
  ///   - cache: The cache that holds saved values; nil for a feed without a cache.
  ///   - key: Returns the key in the cache for an input.
  ///   - policy: The options of the loader's loads.
  public init(
    _ endpoint: Endpoint<Input, Value>, client: any HTTPClient, cache: Cache<Key, Value>?,
    key: @escaping @Sendable (Input) -> Key, policy: LoadPolicy
  ) {
    self.endpoint = endpoint
    self.client = client
    self.cache = cache
    self.key = key
    self.policy = policy
  }

  /// Loads the value for an input.
  ///
  /// Cancelling the calling task cancels the request, and prevents retries, the fallback and the
  /// save. A save that has begun takes effect.
  ///
  /// - Parameters:
  ///   - input: The input for the endpoint's URL.
  ///   - maxAge: The maximum age of a cached value for this load. It can only shorten the cache's
  ///     lifetime; nil, the default, is the one of the policy's loading.
  /// - Returns: The value, and how it was obtained. A value that could not be saved is returned,
  ///   too; its `saveFailure` is the reason.
  /// - Throws: Only ``FeedError``, or `CancellationError` if the calling task was cancelled. The
  ///   load then saved and deleted nothing.
  /// - Complexity: From the cache: one point lookup. From the server: one request, and one per
  ///   retry and page; one append to save the value. A fallback costs both.
  public func load(_ input: Input, maxAge: MaxAge? = nil) async throws -> Loaded<Value> {
    try Task.checkCancellation()
    let loading = loading(within: maxAge)
    do throws(StoreError) { try loading.checkRanges() } catch { throw FeedError.cache(error) }
    if policy.order == .cacheOnly {
      let saved = try await saved(input, loading).mapError(FeedError.cache).get()
      guard let saved else { throw FeedError.notFound }
      return saved
    }
    do {
      return try await withoutFallback(input, loading)
    } catch let failure as RemoteFailure {
      var saved: Result<Loaded<Value>?, StoreError> = .success(nil)
      if mayFallBack { saved = try await self.saved(input, loading, after: failure) }
      switch saved {
      case .success(let saved?): return saved
      case .success(nil): throw FeedError.remote(failure, cache: nil)
      case .failure(let error): throw FeedError.remote(failure, cache: error)
      }
    }
  }

  /// Deletes expired and unreadable entries from the cache.
  ///
  /// Apps call it when they enter the background, and log its errors. It waits for the disk.
  ///
  /// If a damaged block of a file hides entries, the whole cache is cleared, because the hidden
  /// keys are unknown. The next load saves its value again.
  ///
  /// - Parameter maxAge: Also deletes entries of this age or older; nil, the default, applies only
  ///   the cache's lifetime.
  /// - Returns: The numbers of deleted and kept entries; nil if the loader has no cache.
  /// - Throws: Only `StoreError`, like ``/Larder/Cache/validate(maxAge:)``.
  /// - Complexity: Like ``/Larder/Cache/validate(maxAge:)``.
  @discardableResult public func validate(maxAge: MaxAge? = nil) throws -> ValidationReport? {
    let report = try cache?.validate(maxAge: maxAge)
    if report?.isComplete == false { try cache?.removeAll() }
    return report
  }
}

extension Loader where Input == Void {
  /// Loads the value of a feed without an input.
  ///
  /// See ``load(_:maxAge:)``.
  public func load(maxAge: MaxAge? = nil) async throws -> Loaded<Value> {
    try await load((), maxAge: maxAge)
  }

  /// Loads the value of a feed without an input and passes it to a completion.
  ///
  /// See ``load(_:maxAge:completion:)``.
  @discardableResult public func load(
    maxAge: MaxAge? = nil,
    completion: @escaping @Sendable (Result<Loaded<Value>, FeedError>) -> Void
  ) -> Task<Void, Never> {
    load((), maxAge: maxAge, completion: completion)
  }

  /// Reads the fresh list in the cache of a feed without an input.
  ///
  /// See ``cached(_:maxAge:)``.
  public func cached<Item>(maxAge: MaxAge? = nil) async throws -> [Item] where Value == [Item] {
    try await cached((), maxAge: maxAge)
  }
}

extension Loader {
  /// Reads the fresh list in the cache, or returns an empty list if it is missing or too old.
  ///
  /// This never makes a request. To distinguish an empty list from a missing one, load with
  /// ``SourceOrder/cacheOnly``.
  ///
  /// - Parameters:
  ///   - input: The input for the key in the cache.
  ///   - maxAge: As in ``load(_:maxAge:)``.
  /// - Returns: The list.
  /// - Throws: The `StoreError` of reading the cache, which keeps the entry. `CancellationError` if
  ///   the calling task was cancelled.
  /// - Complexity: One point lookup.
  public func cached<Item>(
    _ input: Input, maxAge: MaxAge? = nil
  ) async throws -> [Item] where Value == [Item] {
    let found = try await find(key(input), loading(within: maxAge)).get()
    guard let found, !found.isStale else { return [] }
    return found.entry.value
  }

  /// Loads the value for an input and passes it to a completion.
  ///
  /// See ``load(_:maxAge:)``.
  ///
  /// ```swift
  /// let task = images.load(image.url) { result in show(result) }
  /// task.cancel()
  /// ```
  ///
  /// - Parameters:
  ///   - input: The input for the endpoint's URL.
  ///   - maxAge: As in ``load(_:maxAge:)``.
  ///   - completion: Called once, on any thread, unless the task is cancelled first. A call that
  ///     has begun continues.
  /// - Returns: The task of the load. To cancel it stops the request, and delivers nothing. A load
  ///   continues even if its task is released.
  @discardableResult public func load(
    _ input: Input, maxAge: MaxAge? = nil,
    completion: @escaping @Sendable (Result<Loaded<Value>, FeedError>) -> Void
  ) -> Task<Void, Never> {
    Task {
      let result: Result<Loaded<Value>, FeedError>
      do {
        result = .success(try await load(input, maxAge: maxAge))
      } catch let error as FeedError {
        result = .failure(error)
      } catch {
        return
      }
      if !Task.isCancelled { completion(result) }
    }
  }
}

// MARK: - The two sources

extension Loader {
  /// The options of a load with a maximum age of its own; nil for the policy's.
  private func loading(within maxAge: MaxAge?) -> Loading {
    var loading = policy.loading
    if let maxAge { loading.maxAge = maxAge }
    return loading
  }

  /// Whether the cache may have a value that can be delivered after the server has failed.
  private var mayFallBack: Bool {
    switch policy.order {
    case .remoteOnly: false
    case .cacheOnly, .remoteThenCache: true
    case .cacheThenRemote: policy.usesCacheLoads
    }
  }

  /// Reads the saved value; nil if it must not be returned without a reply of the server.
  ///
  /// Throws only `CancellationError`.
  private func saved(
    _ input: Input, _ loading: Loading, after failure: RemoteFailure? = nil
  ) async throws -> Result<Loaded<Value>?, StoreError> {
    try await find(key(input), loading).map { found in
      guard let found, !found.isStale || found.mayBeUsed(loading, after: failure) else {
        return nil
      }
      return found.loaded(after: failure)
    }
  }

  /// Loads a value, and reads the cache only if that comes first.
  ///
  /// Throws only ``RemoteFailure`` and `CancellationError`.
  private func withoutFallback(
    _ input: Input, _ loading: Loading
  ) async throws -> Loaded<Value> {
    if policy.usesCacheLoads, let cache, let loaded = try await shared(input, loading, in: cache) {
      return loaded
    }
    if policy.order == .cacheThenRemote,
      case .success(let found?) = try await find(key(input), loading), !found.isStale
    {
      return found.loaded()
    }
    return try await saving(try await endpoint.load(input, sender), for: key(input))
  }

  /// Sends the requests of one load.
  var sender: RequestSender {
    var sender = RequestSender(client: client, policy: policy)
    if let store = cache?.store { (sender.timer, sender.random) = (store.loadTimer, store.random) }
    return sender
  }

  /// Saves a value from the server if the policy says so.
  ///
  /// Throws only `CancellationError`.
  private func saving(
    _ mapped: Endpoint<Input, Value>.Mapped, for key: Key
  ) async throws -> Loaded<Value> {
    try Task.checkCancellation()
    var (isSaved, failure): (Bool, StoreError?) = (false, nil)
    if policy.savesRemote, let cache {
      do {
        try await cache.store.run { try cache.save(mapped.value, for: key) }
        isSaved = true
      } catch let error as StoreError {
        failure = error
      }
    }
    let entry = LoadedEntry(
      mapped.value, origin: .loaded, savedAt: nil, age: .zero, isStale: false, isRefreshing: false,
      isSaved: isSaved, saveFailure: failure, loadFailure: nil)
    return Loaded(entry, leftOut: mapped.leftOut)
  }
}

// MARK: - Entries

/// An entry that has not expired.
struct FoundEntry<Value: Sendable>: Sendable {
  let entry: Entry<Value>
  /// Whether it is past its own fresh time.
  let isPast: Bool
  /// Whether it is past its own fresh time, or at the maximum age of the load.
  let isStale: Bool
  let lifetime: Lifetime
  /// What header fields say of its use; nothing without HTTP caching.
  let mark: StoredMark

  /// Whether header fields forbid its use without the server.
  var isForbidden: Bool { isPast && mark.mustRevalidate }

  /// Whether a window that header fields open at the end of its fresh time is still open.
  func isWithin(_ window: Int?) -> Bool {
    guard isPast, let window, let freshEnd = lifetime.freshEnd(from: entry.savedAt) else {
      return false
    }
    return entry.readAt < mark.end(ofWindow: window, from: freshEnd)
  }

  /// Whether it may be delivered although it is stale; without a failure, the server is not asked.
  func mayBeUsed(_ loading: Loading, after failure: RemoteFailure?) -> Bool {
    if isForbidden { return false }
    if loading.staleWhileRevalidate { return true }
    if let span = loading.staleIfError,
      let end = loading.freshEnd(of: entry.savedAt, in: lifetime),
      entry.readAt <= end.addingTimeInterval(span.inSeconds)
    {
      return true
    }
    return failure?.isServerError == true && isWithin(mark.staleIfError)
  }

  func loaded(after failure: RemoteFailure? = nil) -> Loaded<Value> {
    Loaded(
      LoadedEntry(
        entry.value, origin: entry.origin, savedAt: entry.savedAt, age: entry.age, isStale: isStale,
        isRefreshing: false, isSaved: true, saveFailure: nil, loadFailure: failure))
  }
}

extension Loader {
  /// Reads an entry that has not expired; nil if there is none.
  ///
  /// Throws only `CancellationError`.
  func find(
    _ key: Key, _ loading: Loading
  ) async throws -> Result<FoundEntry<Value>?, StoreError> {
    try Task.checkCancellation()
    guard let cache else { return .success(nil) }
    let result: Result<FoundEntry<Value>?, StoreError>
    do {
      switch try await cache.store.run({ try cache.lookup(for: key) }) {
      case .fresh(let entry): result = .success(found(entry, isPast: false, loading, in: cache))
      case .stale(let entry): result = .success(found(entry, isPast: true, loading, in: cache))
      case .expired, .missing: result = .success(nil)
      }
    } catch let error as StoreError {
      result = .failure(error)
    }
    try Task.checkCancellation()
    return result
  }

  private func found(
    _ entry: Entry<Value>, isPast: Bool, _ loading: Loading, in cache: Cache<Key, Value>
  ) -> FoundEntry<Value> {
    FoundEntry(
      entry: entry, isPast: isPast,
      isStale: isPast || !loading.admits(entry.savedAt, at: entry.readAt),
      lifetime: entry.lifetime ?? cache.lifetime,
      mark: policy.httpCaching ? StoredMark(entry.validator) : StoredMark())
  }
}
