public import Larder
public import Observation

/// A value of a cache that views show, and that changes when the cache does.
///
/// ```swift
/// struct FeedView: View {
///   @State var feed: CachedValue<String, [Item]>
///
///   var body: some View {
///     switch feed.state {
///     case .loading: ProgressView()
///     case .value(let entry): List(entry.value) { Row($0) }
///     case .absent: Text("There is nothing here yet.")
///     case .failed(let error, let old): Failure(error, over: old?.value)
///     }
///   }
/// }
/// let feed = CachedValue(items, "home") { try await fetchItems() }
/// ```
///
/// It follows `Cache.states(for:loading:load:)` from its creation until it is released:
/// it loads the value if there is no fresh one, and shows each later change and load of the key,
/// by whomever. Its cache's store stays open as long.
@MainActor @Observable public final class CachedValue<Key: CacheKey, Value: Sendable> {
  /// What there is to show now.
  ///
  /// It begins with the value if that is fresh and in memory, and otherwise with `.loading`.
  public private(set) var state: LoadState<Value>

  @ObservationIgnored private let cache: Cache<Key, Value>
  @ObservationIgnored private let key: Key
  @ObservationIgnored private let loading: Loading?
  @ObservationIgnored private let load: Cache<Key, Value>.Load
  @ObservationIgnored private var loop: Task<Void, Never>?

  /// Begins to follow a key.
  ///
  /// - Parameters:
  ///   - cache: The cache.
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of its loads; nil, the default, uses the cache's.
  ///   - load: Is passed the entry of the key; nil if the key has no entry that can be used.
  public init(
    _ cache: Cache<Key, Value>, _ key: Key, loading: Loading? = nil,
    load: @escaping Cache<Key, Value>.Load
  ) {
    (self.cache, self.key, self.loading, self.load) = (cache, key, loading, load)
    let states = cache.states(for: key, loading: loading, load: load)
    state = states.inMemory ?? .loading
    loop = Task { [weak self] in
      for await state in states {
        guard let self else { return }
        self.state = state
      }
    }
  }

  /// Begins to follow a key with a closure that always has a value.
  ///
  /// - Parameters:
  ///   - cache: The cache.
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of its loads; nil, the default, uses the cache's.
  ///   - load: Returns the value to save, at most 32 MiB encoded.
  public convenience init(
    _ cache: Cache<Key, Value>, _ key: Key, loading: Loading? = nil,
    load: @escaping @Sendable () async throws -> Value
  ) {
    self.init(cache, key, loading: loading) { _ in .value(try await load()) }
  }

  deinit { loop?.cancel() }

  /// The value that can be shown, also while it is loaded again or after that has failed.
  public var value: Value? { state.value }

  /// Loads the value again, as after a pull to refresh, and returns when that has ended.
  ///
  /// The outcome is in ``state``; a failure is, too.
  public func refresh() async {
    do {
      _ = try await cache.refresh(key, loading: loading, load: load)
    } catch {
      // The states tell everybody who follows the key, this value too.
    }
  }
}
