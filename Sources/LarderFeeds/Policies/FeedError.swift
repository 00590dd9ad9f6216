public import Foundation
public import HTTPTypes
public import Larder
import LarderHTTP

/// Why a server delivered no value, and what it said.
///
/// ```swift
/// } catch FeedError.remote(let failure, _) where failure.status == 401 {
///   signInAgain()
/// } catch FeedError.remote(let failure, _) where failure.kind == .connectivity {
///   showOffline(failure.underlying as? URLError)
/// }
/// ```
public struct RemoteFailure: Error, Sendable {
  /// The kind of a failure.
  public enum Kind: Hashable, Sendable {
    /// There was no reply: no connection, a time limit, a refused redirect or an incomplete
    /// response.
    case connectivity
    /// The reply does not follow the feed's contract.
    case invalidData
  }

  /// The kind of the failure.
  public let kind: Kind
  /// The status and the header fields of the reply; nil if there was none.
  public let response: HTTPResponse?
  /// The beginning of the reply's body, at most ``bodyLimit`` bytes.
  public let body: Data
  /// The error of the client, or of whoever has read the reply, such as a `DecodingError`; nil if
  /// the status alone was not accepted.
  public let underlying: (any Error)?
  /// The time after which the server wants to be asked again, by its `Retry-After` field; nil if it
  /// did not say.
  ///
  /// Retries and `retryThrottle` respect it, as ``/Larder/RetryTimeError`` says. A date in the
  /// field counts from the reply's own `Date`, or from now without one; a past date is zero.
  public let retryAfter: Duration?

  /// The most bytes of a body that a failure keeps: 4,096.
  public static let bodyLimit = 4096

  /// Makes a failure, such as for a client of one's own, a preview or a test.
  ///
  /// - Parameters:
  ///   - kind: The kind of the failure.
  ///   - response: The reply; nil, the default, for none.
  ///   - body: The reply's body, of which the beginning is kept; empty by default.
  ///   - underlying: The error behind it; nil, the default, for none.
  public init(
    _ kind: Kind, response: HTTPResponse? = nil, body: Data = Data(),
    underlying: (any Error)? = nil
  ) {
    (self.kind, self.response, self.underlying) = (kind, response, underlying)
    // Copied, so that the rest is freed.
    self.body = Data(Array(body.prefix(Self.bodyLimit)))
    retryAfter = response.flatMap(Self.retryAfter)
  }

  /// The status code of the reply; nil if there was none.
  public var status: Int? { response?.status.code }

  /// Whether there was no reply, or one of a server or gateway in trouble: the failures for which
  /// RFC 5861 allows a stale response.
  var isServerError: Bool {
    kind == .connectivity || response?.status.isServerError == true
  }

  /// RFC 9110, section 10.2.3.
  private static func retryAfter(_ response: HTTPResponse) -> Duration? {
    guard let text = response.headerFields[.retryAfter]?.trimmed else { return nil }
    if let seconds = deltaSeconds(text) { return .seconds(seconds) }
    guard let date = httpDate(text) else { return nil }
    let now = response.headerFields[.date].flatMap { httpDate($0) } ?? SystemClock().now()
    return .seconds(max(0, min(date.timeIntervalSince(now), 2_147_483_648)))
  }
}

extension RemoteFailure: RetryTimeError {}

/// Why a load delivered nothing.
///
/// A ``Loader`` throws only this error, and `CancellationError` if the calling task was cancelled.
/// In each case the load saved and deleted nothing.
public enum FeedError: Error, Sendable {
  /// The server failed, and the cache, if the order includes it, had no fresh value.
  ///
  /// `cache` is the error of reading the cache after the server had failed; nil if there was no
  /// such error.
  case remote(RemoteFailure, cache: StoreError?)

  /// The cache could not be read, and the order does not include the server. The entry is kept.
  ///
  /// Or an option of ``LoadPolicy/loading`` is outside its limits, whatever the order; the error is
  /// then ``/Larder/StoreError/invalidArgument(_:)``.
  case cache(StoreError)

  /// The cache has no fresh value, and the order does not include the server.
  case notFound
}

extension RemoteFailure: LocalizedError, CustomStringConvertible {
  /// Returns ``description``, so that `localizedDescription` does too.
  public var errorDescription: String? { description }

  /// The failure as a sentence for readers.
  public var description: String {
    switch kind {
    case .connectivity: "The server could not be reached."
    case .invalidData: "The server's answer is not valid."
    }
  }

  /// What is behind the failure, as a sentence for a log: the status and the error.
  public var failureReason: String? {
    let parts = [
      status.map { "The server answered with status \($0)." }, underlying.map { "\($0)" },
    ].compactMap { $0 }
    return parts.isEmpty ? nil : parts.joined(separator: " ")
  }
}

extension FeedError: LocalizedError, CustomStringConvertible {
  /// Returns ``description``, so that `localizedDescription` does too.
  public var errorDescription: String? { description }

  /// The error in sentences.
  public var description: String {
    switch self {
    case .remote(let failure, nil): "\(failure)"
    case .remote(let failure, let error?): "\(failure) The cache could not be read: \(error)"
    case .cache(.invalidArgument(let message)): "\(StoreError.invalidArgument(message))"
    case .cache(let error): "The cache could not be read: \(error)"
    case .notFound: "The cache has no value that is fresh enough."
    }
  }
}
