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

/// How often a load retries a request, and after which failures.
///
/// Attempts follow each other without a delay and request the same URL. Any other failure ends the
/// attempts at once.
public struct Retry: Sendable, Hashable {
  /// The largest number of attempts after the first one.
  ///
  /// 0 by default; a negative number counts as 0.
  public var extraAttempts = 0

  /// The failures after which the load retries; empty by default.
  public var on: Set<RemoteFailure> = []

  /// A single attempt.
  public static let never = Retry()

  /// Up to `attempts` extra attempts, each after one of `failures`.
  ///
  /// A negative number of attempts is a programmer error.
  public static func extra(_ attempts: Int, on failures: Set<RemoteFailure>) -> Retry {
    precondition(attempts >= 0, "the number of extra attempts must not be negative")
    return Retry(extraAttempts: attempts, on: failures)
  }
}

/// The options in which one feed's loads differ from another's.
///
/// The other rules are the same for all feeds: a value is saved before it is delivered, a failed
/// save does not fail the load, a load deletes nothing, and an empty list in the cache is a value.
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

  /// Makes a policy with the defaults of an order.
  public init(_ order: SourceOrder) {
    self.order = order
    self.savesRemote = order != .remoteOnly
  }
}
