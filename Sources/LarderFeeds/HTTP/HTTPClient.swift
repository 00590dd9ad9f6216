public import Foundation

/// A server's reply: the status code and the whole body.
public struct HTTPReply: Sendable {
  /// The status code, which a client does not check.
  public var status: Int

  /// The decompressed body; empty if the server sent no body.
  public var body: Data

  /// Makes a reply, for a client of your own.
  public init(status: Int, body: Data) {
    self.status = status
    self.body = body
  }
}

/// Sends GET requests.
///
/// ``URLSessionClient`` sends them over the network; tests and offline modes use clients of their
/// own.
///
/// ```swift
/// struct Offline: HTTPClient {
///   func get(_ url: URL) async throws -> HTTPReply { throw URLError(.notConnectedToInternet) }
/// }
/// ```
///
/// A client can be used from any thread, with any number of requests at once.
public protocol HTTPClient: Sendable {
  /// Sends one GET request and returns the reply, whatever its status code.
  ///
  /// When the calling task is cancelled, an implementation stops the request and throws; a
  /// ``Loader`` then throws `CancellationError`.
  ///
  /// - Parameter url: The URL, requested unchanged.
  /// - Returns: The reply. An ``Endpoint`` checks its status code.
  /// - Throws: Any error if there is no reply. A ``Loader`` reports all of them as
  ///   ``RemoteFailure/connectivity``.
  /// - Complexity: One request.
  func get(_ url: URL) async throws -> HTTPReply
}
