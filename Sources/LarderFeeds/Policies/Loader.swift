public import Larder

/// Loads a feed's value from a server and a cache, in the order of its policy.
///
/// ```swift
/// let genres = try GenresLoader.genres(from: server, client: URLSessionClient(), store: store)
/// let loaded = try await genres.load()
/// show(loaded.value, from: loaded.source, age: loaded.age)
/// ```
///
/// A loader is a small value without state: use it from any thread, for any number of concurrent
/// loads. Two loads make two requests, unless the policy lets them share one. A load reads and
/// saves, but never deletes; ``validate(maxAge:)`` does. A load waits for the disk on the store's
/// threads, as ``/Larder/Store/run(_:)`` does, and not on those of Swift's cooperative pool.
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
  ///     lifetime; nil, the default, uses the policy's maximum age.
  /// - Returns: The value and its source. A value that could not be saved is returned, too;
  ///   ``Loaded/saveFailure`` has the reason.
  /// - Throws: Only ``FeedError``, or `CancellationError` if the calling task was cancelled. The
  ///   load then saved and deleted nothing.
  /// - Complexity: From the cache: one point lookup. From the server: one request, and one per
  ///   retry and page; one append to save the value. A fallback costs both.
  public func load(_ input: Input, maxAge: MaxAge? = nil) async throws -> Loaded<Value> {
    let maxAge = maxAge ?? policy.maxAge
    if policy.usesLoading, let cache {
      if let loaded = try await shared(input, maxAge, in: cache) { return loaded }
    }
    switch policy.order {
    case .remoteOnly:
      return try delivered(await remote(input))
    case .cacheOnly:
      let canBeStale = policy.servesStale != .never
      let hit = try await local(input, maxAge, canBeStale: canBeStale).mapError(FeedError.cache)
      guard let hit = try hit.get() else { throw FeedError.notFound }
      return hit
    case .cacheThenRemote:
      if case .success(let hit?) = try await local(input, maxAge) { return hit }
      return try delivered(await remote(input))
    case .remoteThenCache:
      let remote = try await remote(input)
      guard case .failure(let failure) = remote else { return try delivered(remote) }
      // The error always includes the server's failure.
      switch try await local(input, maxAge, after: failure) {
      case .success(let hit?): return hit
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
    try await local(input, maxAge ?? policy.maxAge).get()?.value ?? []
  }
}

// MARK: - The two sources

extension Loader {
  /// Reads the cache; nil if it has no fresh value.
  ///
  /// Throws only `CancellationError`.
  private func local(
    _ input: Input, _ maxAge: MaxAge?, canBeStale: Bool = false,
    after remoteFailure: RemoteFailure? = nil
  ) async throws -> Result<Loaded<Value>?, StoreError> {
    try Task.checkCancellation()
    guard let cache else { return .success(nil) }
    let found = try await find(key(input), maxAge, in: cache)
    return found.map { found -> Loaded<Value>? in
      guard let found, found.isFresh || canBeStale else { return nil }
      return Loaded(cached: found.entry, isStale: !found.isFresh, after: remoteFailure)
    }
  }

  /// Requests the value from the server, with retries, and saves it.
  ///
  /// Throws only `CancellationError`.
  private func remote(_ input: Input) async throws -> Result<Loaded<Value>, RemoteFailure> {
    do {
      return .success(try await saved(try await endpoint.load(input, sender), for: key(input)))
    } catch let failure as RequestFailure {
      return .failure(failure.reason)
    }
  }

  /// Sends the requests of one load.
  var sender: RequestSender {
    var sender = RequestSender(client: client, retry: policy.retry)
    if let store = cache?.store { (sender.timer, sender.random) = (store.loadTimer, store.random) }
    return sender
  }

  private func delivered(
    _ remote: Result<Loaded<Value>, RemoteFailure>
  ) throws(FeedError) -> Loaded<Value> {
    try remote.mapError { FeedError.remote($0, cache: nil) }.get()
  }

  /// Saves a value from the server if the policy says so.
  ///
  /// Throws only `CancellationError`.
  private func saved(
    _ mapped: Endpoint<Input, Value>.Mapped, for key: Key
  ) async throws -> Loaded<Value> {
    try Task.checkCancellation()
    let (value, leftOut) = (mapped.value, mapped.leftOut)
    guard policy.savesRemote, let cache else {
      return Loaded(value: value, source: .remote, isSaved: false, leftOut: leftOut)
    }
    do {
      try await cache.store.run { try cache.save(value, for: key) }
      return Loaded(value: value, source: .remote, isSaved: true, leftOut: leftOut)
    } catch let error as StoreError {
      return Loaded(
        value: value, source: .remote, isSaved: false, saveFailure: error, leftOut: leftOut)
    }
  }
}

// MARK: - Entries

/// An entry that has not expired.
struct FoundEntry<Value: Sendable>: Sendable {
  let entry: Entry<Value>
  /// Whether it is within its fresh time.
  let isWithinLifetime: Bool
  /// Whether it is within its fresh time, and below the maximum age of the load.
  let isFresh: Bool
}

extension Loader {
  /// Reads an entry that has not expired; nil if there is none.
  ///
  /// Throws only `CancellationError`.
  func find(
    _ key: Key, _ maxAge: MaxAge?, in cache: Cache<Key, Value>
  ) async throws -> Result<FoundEntry<Value>?, StoreError> {
    let result: Result<FoundEntry<Value>?, StoreError>
    do {
      switch try await cache.store.run({ try cache.lookup(for: key) }) {
      case .fresh(let entry):
        let isFresh = maxAge.map { $0.admits(entry.savedAt, at: entry.readAt) } ?? true
        result = .success(FoundEntry(entry: entry, isWithinLifetime: true, isFresh: isFresh))
      case .stale(let entry):
        result = .success(FoundEntry(entry: entry, isWithinLifetime: false, isFresh: false))
      case .expired, .missing: result = .success(nil)
      }
    } catch let error as StoreError {
      result = .failure(error)
    }
    try Task.checkCancellation()
    return result
  }
}
