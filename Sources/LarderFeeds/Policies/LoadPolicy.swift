public import Larder

/// The sources that a load uses, in order.
public enum SourceOrder: Sendable, Hashable {
  /// The server only.
  case remoteOnly
  /// The cache only. A load never makes a request.
  case cacheOnly
  /// The server, or the cache if the server fails in any way.
  case remoteThenCache
  /// The cache, or the server if the cache has no fresh value or cannot be read.
  case cacheThenRemote
}

/// How a feed loads: an order of its sources, and a ``/Larder/Loading``.
///
/// ```swift
/// // The cache for an hour, then the server; if that fails, what was saved in the last 30 days.
/// var policy = LoadPolicy(.cacheThenRemote)
/// policy.loading.maxAge = .hours(1)
/// policy.loading.staleIfError = .seconds(30 * 86_400)
/// ```
///
/// The other rules are the same for all feeds: a value is saved before it is delivered, a failed
/// save does not fail the load, a load deletes nothing, and an empty list in the cache is a value.
///
/// ``coalesces``, ``httpCaching`` and each option of ``loading`` except for its maximum age and its
/// retries need a cache. Each of them makes the loads of a key share requests, as ``coalesces``
/// describes.
public struct LoadPolicy: Sendable, Hashable {
  /// The sources that a load uses, in order.
  public var order: SourceOrder

  /// The options that a feed shares with a cache; none is used by default.
  ///
  /// They are ages, retries, time limits, and the use of stale values.
  /// They mean what they mean for a cache, where the order of the sources allows it:
  ///
  /// - Retries are of a request, and send it again as it was; see ``retriesAfter``. To retry
  ///   without a delay, let the first delay be zero.
  /// - For ``SourceOrder/remoteThenCache``, which waits for the server, a fresh value is returned
  ///   as a stale one would be: if the server fails, or after the soft timeout.
  ///   `staleWhileRevalidate` then only allows a stale value if the server fails. `retryThrottle`
  ///   and `refreshAhead` have no effect.
  /// - The hard timeout is a failure of the server, ``RemoteFailure/Kind/connectivity``.
  /// - `absentFor` and `concurrent` have no effect: a reply always has a value, and the number of
  ///   loads at once is a setting of the cache.
  ///
  /// An option outside its limits fails each load with ``FeedError/cache(_:)``.
  public var loading: Loading

  /// The failures after which a request is sent again, as often as the retries of ``loading`` say.
  ///
  /// Any other failure ends the attempts at once. Both failures by default.
  public var retriesAfter: Set<RemoteFailure.Kind> = [.connectivity, .invalidData]

  /// Whether a value from the server is saved in the cache.
  ///
  /// True by default, except for ``SourceOrder/remoteOnly``.
  public var savesRemote: Bool

  /// Whether loads of a key that run at the same time share one request; false by default.
  ///
  /// A load that needs the server joins a request that is under way for its key, also one of
  /// another loader of the same cache. The request is cancelled when all its loads are. If the
  /// key's entry is saved or removed meanwhile, that change wins: the loads get the server's value,
  /// and it is not saved.
  public var coalesces = false

  /// Whether the header fields of responses decide how long values are fresh (RFC 9111, RFC 5861);
  /// false by default.
  ///
  /// <doc:HTTPCaching> has the rules.
  public var httpCaching = false

  /// Makes a policy with the defaults of an order.
  ///
  /// - Parameters:
  ///   - order: The sources that a load uses, in order.
  ///   - loading: The other options; none is used by default.
  public init(_ order: SourceOrder, _ loading: Loading = Loading()) {
    (self.order, self.loading) = (order, loading)
    savesRemote = order != .remoteOnly
  }

  /// Whether the cache makes the loads, with its `entry(for:loading:load:)`.
  var usesCacheLoads: Bool {
    var simple = Loading()
    (simple.maxAge, simple.retries) = (loading.maxAge, loading.retries)
    return coalesces || httpCaching || loading != simple
  }
}
