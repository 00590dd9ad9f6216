public import Foundation
public import HTTPTypes

/// Sends HTTP requests.
///
/// ``URLSessionClient`` is the client for apps and servers. Tests and other transports use clients
/// of their own.
///
/// ```swift
/// struct Offline: HTTPClient {
///   func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
///     throw URLError(.notConnectedToInternet)
///   }
/// }
/// ```
///
/// A client can be used from any thread, with any number of requests at once.
public protocol HTTPClient: Sendable {
  /// Sends one request and returns the response, whatever its status.
  ///
  /// When the calling task is cancelled, an implementation stops the request and throws; a
  /// ``Loader`` then throws `CancellationError`.
  ///
  /// - Parameters:
  ///   - request: The request, with an `http` or `https` URL.
  ///   - body: The body; empty for none.
  /// - Returns: The response and its body. An ``Endpoint`` checks its status.
  /// - Throws: Any error if there is no response. A ``Loader`` reports all of them as
  ///   ``RemoteFailure/Kind/connectivity``.
  /// - Complexity: One request.
  func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data)
}

extension HTTPClient {
  /// A client that passes each request through a closure.
  ///
  /// The closure may change the request, send it any number of times or not at all, and change the
  /// response. It is called for each attempt of a load, in the task of the load.
  ///
  /// ```swift
  /// let client = URLSessionClient().intercepted { request, body, client in
  ///   var request = request
  ///   request.headerFields[.userAgent] = "Stations/1.0"
  ///   return try await client.send(request, body: body)
  /// }
  /// ```
  ///
  /// ``TokenAuthentication`` is an interceptor, too.
  ///
  /// - Parameter interceptor: Is passed the request, its body, and this client.
  /// - Returns: The client.
  public func intercepted(by interceptor: @escaping HTTPInterceptor) -> some HTTPClient {
    InterceptedClient(base: self, interceptor: interceptor)
  }
}

/// A closure that sends a request with a client, see ``HTTPClient/intercepted(by:)``.
public typealias HTTPInterceptor =
  @Sendable (_ request: HTTPRequest, _ body: Data, _ client: any HTTPClient) async throws
  -> (HTTPResponse, Data)

private struct InterceptedClient: HTTPClient {
  let base: any HTTPClient
  let interceptor: HTTPInterceptor

  func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
    try await interceptor(request, body, base)
  }
}

extension HTTPRequest {
  /// A GET request for a URL.
  ///
  /// A request has no fragment and no user name.
  ///
  /// - Parameter url: An absolute URL.
  /// - Throws: `URLError(.unsupportedURL)` if the URL has no scheme or no host.
  init(get url: URL) throws(URLError) {
    // A URL without a scheme would end the process.
    guard url.scheme != nil, url.host() != nil else { throw URLError(.unsupportedURL) }
    self.init(url: url)
  }
}
