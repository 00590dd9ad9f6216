public import Foundation

/// What a server answered: the status code and the whole body.
public struct HTTPReply: Sendable {
  /// The status code as the server sent it.
  ///
  /// Nothing has judged it yet.
  public var status: Int

  /// The body, decompressed.
  ///
  /// Empty when the server sent none.
  public var body: Data

  /// Makes a reply, as a client of your own does.
  public init(status: Int, body: Data) {
    self.status = status
    self.body = body
  }
}

/// Fetches a URL.
///
/// ``URLSessionClient`` does it over the network; tests and offline modes bring their own.
///
/// ```swift
/// struct Offline: HTTPClient {
///   func get(_ url: URL) async throws -> HTTPReply { throw URLError(.notConnectedToInternet) }
/// }
/// ```
///
/// A client may be used from any thread, and any number of requests may be under way at once.
public protocol HTTPClient: Sendable {
  /// Sends one GET request and returns what came back, whatever its status code.
  ///
  /// When the task that calls it is cancelled, an implementation stops the request and throws;
  /// a ``Loader`` turns that into `CancellationError`.
  ///
  /// - Parameter url: The URL to request, exactly as it is.
  /// - Returns: The reply. Judging its status code is the business of an ``Endpoint``.
  /// - Throws: Any error when there is no reply. A ``Loader`` makes
  ///   ``RemoteFailure/connectivity`` of all of them.
  /// - Complexity: One request.
  func get(_ url: URL) async throws -> HTTPReply
}
