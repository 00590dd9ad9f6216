public import Foundation

/// Why ``URLSessionClient`` rejected a response.
///
/// Network failures, time limits and cancellation are reported as `URLError`.
public enum HTTPClientError: Error, Hashable, Sendable {
  /// The body exceeds the client's limit, by its declared length or while it arrived.
  ///
  /// The client stopped the request there. It held at most `limit` bytes in memory, and the piece
  /// that exceeded them.
  case responseTooLarge(limit: Int)

  /// The client did not follow a redirect: its scheme is not `http` or `https`, it leads from
  /// `https` to `http`, or it is one redirect too many. No request was made to `url`.
  case redirectRefused(to: URL?)

  /// The response is not an HTTP response.
  case unexpectedResponse
}

extension HTTPClientError: LocalizedError, CustomStringConvertible {
  /// Returns ``description``, so that `localizedDescription` does too.
  public var errorDescription: String? { description }

  /// The error as a sentence.
  public var description: String {
    switch self {
    case .responseTooLarge(let limit): "The response is larger than \(limit) bytes."
    case .redirectRefused(let url?): "The redirect to \(url.absoluteString) was refused."
    case .redirectRefused(nil): "A redirect to an unreadable URL was refused."
    case .unexpectedResponse: "The response is not an HTTP response."
    }
  }
}
