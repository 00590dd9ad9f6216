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

/// When a load returns a stale value.
///
/// A value is stale when it is past its fresh time, or at its maximum age, and not expired.
public enum StaleUse: Sendable, Hashable {
  /// Never.
  case never
  /// If the server fails, whatever the failure.
  case onFailure
  /// At once, while it is refreshed in the background. For ``SourceOrder/remoteThenCache``, which
  /// waits for the server, the same as ``onFailure``.
  case whileRefreshing
}

/// How often a load retries a request, and after which failures.
///
/// Attempts send the same request, and follow each other without a delay unless there is one. Any
/// other failure ends the attempts at once.
public struct Retry: Sendable, Hashable {
  /// The largest number of attempts after the first one.
  ///
  /// 0 by default; a negative number counts as 0.
  public var extraAttempts = 0

  /// The failures after which the load retries; empty by default.
  public var on: Set<RemoteFailure> = []

  /// The longest time before the first extra attempt; zero, the default, for no delay.
  ///
  /// The time before the n-th extra attempt is random, between zero and this time 2^(n-1) times
  /// ("full jitter": Brooker, "Exponential Backoff And Jitter", 2015), so that clients that failed
  /// together do not return together. A negative time counts as zero.
  public var firstDelay: Duration = .zero

  /// The longest time before any extra attempt; 30 seconds by default.
  public var longestDelay: Duration = .seconds(30)

  /// A single attempt.
  public static let never = Retry()

  /// Up to `attempts` extra attempts, each after one of `failures`.
  ///
  /// A negative number of attempts is a programmer error.
  public static func extra(
    _ attempts: Int, on failures: Set<RemoteFailure>, firstDelay: Duration = .zero,
    longestDelay: Duration = .seconds(30)
  ) -> Retry {
    precondition(attempts >= 0, "the number of extra attempts must not be negative")
    return Retry(
      extraAttempts: attempts, on: failures, firstDelay: firstDelay, longestDelay: longestDelay)
  }

  /// The time before an extra attempt, counted from 1; `chance` is at least 0 and less than 1.
  func delay(before attempt: Int, chance: Double) -> Duration {
    let retries = Loading.Retries(
      extra: extraAttempts, first: max(.zero, firstDelay), upTo: max(.zero, longestDelay))
    return retries.delay(before: attempt, chance: chance)
  }
}

/// The options in which one feed's loads differ from another's.
///
/// ```swift
/// // The cache for an hour, then the server; if that fails, whatever is saved.
/// var policy = LoadPolicy(.cacheThenRemote)
/// policy.maxAge = .hours(1)
/// policy.servesStale = .onFailure
/// ```
///
/// The other rules are the same for all feeds: a value is saved before it is delivered, a failed
/// save does not fail the load, a load deletes nothing, and an empty list in the cache is a value.
///
/// ``coalesces``, ``servesStale``, ``softTimeout`` and ``httpCaching`` need a cache. Each of them
/// makes the loads of a key share requests, as ``coalesces`` describes.
public struct LoadPolicy: Sendable, Hashable {
  /// The sources that a load uses, in order.
  public var order: SourceOrder

  /// The maximum age of a cached value, for loads without one of their own.
  ///
  /// It can only shorten the cache's lifetime; nil, the default, leaves the lifetime as it is.
  public var maxAge: MaxAge? = nil

  /// When a load retries a request; never by default.
  public var retry: Retry = .never

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

  /// When a load returns a stale value; never by default.
  public var servesStale = StaleUse.never

  /// How long a load waits for the server if the cache has a value that it may return instead.
  ///
  /// The request then goes on in the background, and its value is saved. The value may be stale
  /// only if ``servesStale`` allows it. A negative time counts as zero. Nil, the default, waits for
  /// the server.
  public var softTimeout: Duration? = nil

  /// Whether the header fields of responses decide how long values are fresh (RFC 9111, RFC 5861);
  /// false by default.
  ///
  /// <doc:HTTPCaching> has the rules.
  public var httpCaching = false

  /// Makes a policy with the defaults of an order.
  public init(_ order: SourceOrder) {
    self.order = order
    self.savesRemote = order != .remoteOnly
  }

  /// Whether the cache makes the loads, with its `entry(for:loading:load:)`.
  var usesLoading: Bool {
    order != .cacheOnly && (coalesces || servesStale != .never || softTimeout != nil || httpCaching)
  }
}
