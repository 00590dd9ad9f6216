public import Larder

/// Which of its two sources a load asks, and in which order.
public enum SourceOrder: Sendable, Hashable {
  /// The server only.
  case remoteOnly
  /// The cache only. A load never makes a request.
  case cacheOnly
  /// The server, and the cache when the server fails in any way.
  case remoteThenCache
  /// The cache, and the server when the cache has nothing fresh or cannot be read.
  case cacheThenRemote
}

/// How often a load asks the server again, and after which failures.
///
/// Attempts follow one another without a delay, to the same URL. A failure that is not named ends
/// the load at once.
public struct Retry: Sendable, Hashable {
  /// How many attempts may follow the first one.
  ///
  /// 0 by default; a negative number is as 0.
  public var extraAttempts = 0

  /// The failures after which there is another attempt.
  ///
  /// None by default.
  public var on: Set<RemoteFailure> = []

  /// One attempt and no more.
  public static let never = Retry()

  /// Up to `attempts` more, each after one of `failures`.
  ///
  /// A negative number of attempts is a programmer's error.
  public static func extra(_ attempts: Int, on failures: Set<RemoteFailure>) -> Retry {
    precondition(attempts >= 0, "the number of extra attempts must not be negative")
    return Retry(extraAttempts: attempts, on: failures)
  }
}

/// What makes one feed's loads differ from another's.
///
/// Everything else is the same for all: a value is saved before it is delivered, a failed save does
/// not fail the load, a load deletes nothing, and an empty list in the cache is a list.
public struct LoadPolicy: Sendable, Hashable {
  /// Which source is asked first.
  public var order: SourceOrder

  /// How old a value of the cache may be, for calls that do not say.
  ///
  /// It can only shorten what the cache's lifetime keeps; nil, the default, leaves it to that.
  public var maxAge: MaxAge? = nil

  /// When the server is asked again.
  ///
  /// Never by default.
  public var retry: Retry = .never

  /// Whether what the server delivers replaces what is in the cache.
  ///
  /// True by default, but for ``SourceOrder/remoteOnly``.
  public var savesRemote: Bool

  /// Makes a policy with the defaults of an order.
  public init(_ order: SourceOrder) {
    self.order = order
    self.savesRemote = order != .remoteOnly
  }
}
