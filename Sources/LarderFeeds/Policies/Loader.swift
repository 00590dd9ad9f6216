import Foundation
public import Larder

/// Loads a feed's value from a server and a cache, in the order that its policy says.
///
/// ```swift
/// let genres = try GenresLoader.genres(from: server, client: URLSessionClient(), store: store)
/// let loaded = try await genres.load()
/// show(loaded.value, from: loaded.source, age: loaded.age)
/// ```
///
/// A loader is a light value that holds no state: use it from any thread, any number of times at
/// once. Two loads make two requests. A load reads and saves, and never deletes: that is what
/// ``validate(maxAge:)`` is for. The disk is waited for away from Swift's cooperative pool.
public struct Loader<Input: Sendable, Key: CacheKey, Value: Sendable>: Sendable {
  /// Where values are kept.
  ///
  /// Save, remove or look at entries here without loading them.
  public let cache: Cache<Key, Value>?

  /// What the loader does.
  ///
  /// It may be changed on a copy, for one forced refresh for example.
  public var policy: LoadPolicy

  private let endpoint: Endpoint<Input, Value>
  private let client: any HTTPClient
  private let key: @Sendable (Input) -> Key

  /// Makes a loader for a feed.
  ///
  /// - Parameters:
  ///   - endpoint: The request and the meaning of its reply.
  ///   - client: What sends the request.
  ///   - cache: Where values are kept; nil keeps none and finds none.
  ///   - key: The key in the cache for an input.
  ///   - policy: What the loader does.
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
  /// When the calling task is cancelled, the request is cancelled, and there is no retry, no
  /// fallback and no save; a save that has begun takes effect.
  ///
  /// - Parameters:
  ///   - input: What the endpoint's URL is made from.
  ///   - maxAge: How old a value of the cache may be for this call; nil, the default, leaves it to
  ///     the policy. It can only shorten what the cache's lifetime keeps.
  /// - Returns: The value and where it comes from. What was loaded is delivered even when it could
  ///   not be saved: ``Loaded/saveFailure`` says so.
  /// - Throws: Only ``FeedError``, or `CancellationError` when the calling task was cancelled.
  ///   Nothing was saved or deleted then.
  /// - Complexity: From the cache: one point lookup. From the server: one request, and one per
  ///   retry; one append to save the value. A fallback costs both.
  public func load(_ input: Input, maxAge: MaxAge? = nil) async throws -> Loaded<Value> {
    let maxAge = maxAge ?? policy.maxAge
    switch policy.order {
    case .remoteOnly:
      return try delivered(await remote(input))
    case .cacheOnly:
      guard let hit = try await local(input, maxAge).mapError(FeedError.cache).get() else {
        throw FeedError.notFound
      }
      return hit
    case .cacheThenRemote:
      if case .success(let hit?) = try await local(input, maxAge) { return hit }
      return try delivered(await remote(input))
    case .remoteThenCache:
      let remote = try await remote(input)
      guard case .failure(let failure) = remote else { return try delivered(remote) }
      // The server's failure is what is told, whatever the cache says.
      switch try await local(input, maxAge, after: failure) {
      case .success(let hit?): return hit
      case .success(nil): throw FeedError.remote(failure, cache: nil)
      case .failure(let error): throw FeedError.remote(failure, cache: error)
      }
    }
  }

  /// Deletes what has expired in the cache, and what cannot be read.
  ///
  /// Apps call it when they enter the background, and log what it throws. It waits for the disk.
  ///
  /// If a damaged block of a file hides entries, the whole cache is cleared: what cannot be read
  /// cannot be named, and the next load saves anew.
  ///
  /// - Parameter maxAge: Deletes what is as old as this or older, too; nil, the default, leaves it
  ///   to the cache's lifetime.
  /// - Returns: How many entries were deleted and kept; nil when the loader has no cache.
  /// - Throws: Only `StoreError`, as ``/Larder/Cache/validate(maxAge:)``.
  /// - Complexity: As ``/Larder/Cache/validate(maxAge:)``.
  @discardableResult public func validate(maxAge: MaxAge? = nil) throws -> ValidationReport? {
    let report = try cache?.validate(maxAge: maxAge)
    if report?.isComplete == false { try cache?.removeAll() }
    return report
  }
}

extension Loader where Input == Void {
  /// Loads the value of a feed that needs no input.
  ///
  /// See ``load(_:maxAge:)``.
  public func load(maxAge: MaxAge? = nil) async throws -> Loaded<Value> {
    try await load((), maxAge: maxAge)
  }

  /// Reads the fresh list in the cache of a feed that needs no input.
  ///
  /// See ``cached(_:maxAge:)``.
  public func cached<Item>(maxAge: MaxAge? = nil) async throws -> [Item] where Value == [Item] {
    try await cached((), maxAge: maxAge)
  }
}

extension Loader {
  /// Reads the fresh list in the cache; an empty one when there is none, or it is too old.
  ///
  /// No request is made, whatever the policy. To tell an empty list from none, load with
  /// ``SourceOrder/cacheOnly``.
  ///
  /// - Parameters:
  ///   - input: What the key in the cache is made from.
  ///   - maxAge: As in ``load(_:maxAge:)``.
  /// - Returns: The list.
  /// - Throws: The `StoreError` with which the cache could not be read, as it is; the entry is
  ///   kept. `CancellationError` when the calling task was cancelled.
  /// - Complexity: One point lookup.
  public func cached<Item>(
    _ input: Input, maxAge: MaxAge? = nil
  ) async throws -> [Item] where Value == [Item] {
    try await local(input, maxAge ?? policy.maxAge).get()?.value ?? []
  }
}

// MARK: - The two sources

extension Loader {
  /// Throws only `CancellationError`.
  private func local(
    _ input: Input, _ maxAge: MaxAge?, after remoteFailure: RemoteFailure? = nil
  ) async throws -> Result<Loaded<Value>?, StoreError> {
    try Task.checkCancellation()
    guard let cache else { return .success(nil) }
    let key = key(input)
    let result: Result<Loaded<Value>?, StoreError>
    do {
      let lookup = try await offCooperativePool { try cache.lookup(for: key, maxAge: maxAge) }
      switch lookup {
      case .fresh(let entry): result = .success(Loaded(cached: entry, after: remoteFailure))
      case .stale, .expired, .missing: result = .success(nil)
      }
    } catch let error as StoreError {
      result = .failure(error)
    }
    try Task.checkCancellation()
    return result
  }

  /// Throws only `CancellationError`.
  private func remote(_ input: Input) async throws -> Result<Loaded<Value>, RemoteFailure> {
    let url = endpoint.url(input)
    var extraAttempts = policy.retry.extraAttempts
    while true {
      switch try await request(url) {
      case .success(let mapped):
        return .success(try await saved(mapped, for: key(input)))
      case .failure(let failure):
        guard extraAttempts > 0, policy.retry.on.contains(failure) else { return .failure(failure) }
        extraAttempts -= 1
      }
    }
  }

  private func delivered(
    _ remote: Result<Loaded<Value>, RemoteFailure>
  ) throws(FeedError) -> Loaded<Value> {
    try remote.mapError { FeedError.remote($0, cache: nil) }.get()
  }

  /// One attempt.
  ///
  /// Throws only `CancellationError`.
  private func request(
    _ url: URL
  ) async throws -> Result<Endpoint<Input, Value>.Mapped, RemoteFailure> {
    try Task.checkCancellation()
    let reply: HTTPReply
    do {
      reply = try await client.get(url)
    } catch {
      // What a client throws when it is cancelled is its own affair.
      try Task.checkCancellation()
      return .failure(.connectivity)
    }
    // So is what it still delivers then.
    try Task.checkCancellation()
    do {
      return .success(try endpoint.map(reply))
    } catch {
      return .failure(.invalidData)
    }
  }

  /// Saves what the server delivered, before it is delivered.
  ///
  /// Throws only `CancellationError`.
  private func saved(
    _ mapped: Endpoint<Input, Value>.Mapped, for key: Key
  ) async throws -> Loaded<Value> {
    try Task.checkCancellation()
    let (value, leftOut) = mapped
    guard policy.savesRemote, let cache else {
      return Loaded(remote: value, leftOut: leftOut, isSaved: false)
    }
    do {
      try await offCooperativePool { try cache.save(value, for: key) }
      return Loaded(remote: value, leftOut: leftOut, isSaved: true)
    } catch let error as StoreError {
      return Loaded(remote: value, leftOut: leftOut, isSaved: false, saveFailure: error)
    }
  }
}
