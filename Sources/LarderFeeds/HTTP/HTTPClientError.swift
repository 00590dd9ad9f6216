public import Foundation

/// Why ``URLSessionClient`` gave up on a response that the network would have delivered.
///
/// What the network itself reports arrives as `URLError`: no connection, `timedOut`, `cancelled`.
public enum HTTPClientError: Error, Hashable, Sendable {
  /// The body is larger than the client takes, by its declared length or as it arrived.
  ///
  /// The request was cut off there: at most `limit` bytes, and the piece that went over, were ever
  /// held in memory.
  case responseTooLarge(limit: Int)

  /// The server sent the client somewhere it does not go: not to `http` or `https`, from `https`
  /// down to `http`, or on once too often. No request was made to `url`.
  case redirectRefused(to: URL?)

  /// What came back is not an HTTP response.
  case unexpectedResponse
}

extension HTTPClientError: LocalizedError, CustomStringConvertible {
  /// The same as ``description``, so that `localizedDescription` is.
  public var errorDescription: String? { description }

  /// The error as a sentence.
  public var description: String {
    switch self {
    case .responseTooLarge(let limit): "The response is larger than \(limit) bytes."
    case .redirectRefused(let url?): "The redirect to \(url.absoluteString) was refused."
    case .redirectRefused(nil): "A redirect to no readable URL was refused."
    case .unexpectedResponse: "What came back is not an HTTP response."
    }
  }
}
