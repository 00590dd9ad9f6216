public import Foundation
public import HTTPTypes
public import Larder

/// A shared cache of HTTP responses in front of a server's handler, by the rules of RFC 9111.
///
/// ```swift
/// let responses = try ResponseCache(in: store)
/// // In the server's adapter:
/// let (response, body) = try await responses.respond(to: request, body: body) { request, body in
///   try await handler.handle(request, body)
/// }
/// ```
///
/// Responses to GET requests are kept as long as their header fields allow, and answer GET and HEAD
/// requests, also conditional ones. Requests that come while a response is made wait for it, and
/// share it if it may be shared. <doc:LarderHTTP> has the rules, each with its source. Bodies are
/// in memory as a whole.
public struct ResponseCache: Sendable {
  /// Makes the response to a request.
  ///
  /// It is called for each request that the cache does not answer. A GET request comes without the
  /// client's conditions; it may have those of the cache, and a response with status 304 then
  /// confirms what the cache has.
  public typealias Handler =
    @Sendable (_ request: HTTPRequest, _ body: Data) async throws -> (HTTPResponse, Data)

  /// The settings of a response cache.
  public struct Options: Sendable, Hashable {
    /// The largest body that is kept, in bytes; 1 MiB by default.
    public var maximumBodyBytes = 1 << 20
    /// How long a response with a validator is kept after it has become stale, so that the handler
    /// can confirm it; a day by default.
    public var keptForValidation = Duration.seconds(86_400)
    /// The name of the cache in `Cache-Status` header fields (RFC 9211); nil for no such fields.
    ///
    /// Letters, digits and hyphens; `Larder` by default.
    public var statusName: String? = "Larder"

    /// Makes the default settings.
    public init() {}
  }

  let responses: Cache<String, Stored>
  let options: Options

  /// Opens the cache of responses of a store.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - name: The name of the cache; `responses` by default.
  ///   - byteBudget: The most bytes that the responses may take; 64 MiB by default, nil for no
  ///     limit.
  ///   - options: The settings.
  /// - Throws: A `StoreError`, as `Store.cache`.
  public init(
    in store: Store, name: String = "responses", byteBudget: Int? = 64 << 20,
    options: Options = Options()
  ) throws {
    self.options = options
    responses = try store.cache(
      name, of: Stored.self, lifetime: .unlimited, byteBudget: byteBudget)
  }

  /// Answers a request from the cache, or with the handler.
  ///
  /// - Parameters:
  ///   - request: The request. Its scheme, authority and path say which response it asks for.
  ///   - body: Its body; empty for none.
  ///   - handler: Makes the response if the cache has none.
  /// - Returns: The response and its body.
  /// - Throws: The error of the handler, unless a stale response may take its place.
  ///   `CancellationError` if the calling task is cancelled. A store that fails fails no request:
  ///   the handler answers it.
  /// - Complexity: One lookup, or two if the response varies; one call of the handler, and one
  ///   append, if the cache has no response.
  public func respond(
    to request: HTTPRequest, body: Data = Data(), by handler: @escaping Handler
  ) async throws -> (HTTPResponse, Data) {
    guard request.method == .get || request.method == .head else {
      return try await change(by: request, body, handler)
    }
    let exchange = Exchange(request, body, handler)
    guard let key = exchange.key else { return try await bypass(exchange, "bypass") }
    // The second key is that of the variant; the others are for lists that have changed meanwhile.
    var selected = Selected(key: key)
    for _ in 0..<4 {
      switch try await find(selected, for: exchange) {
      case .answer(let response, let body): return exchange.answer(response, body)
      case .varies(let variants): selected = Selected(variants, of: exchange, under: key)
      case .missing: return try await bypass(exchange, "miss")
      }
    }
    return try await bypass(exchange, "vary-miss")
  }

  /// Forgets the response to GET requests for the URL of a request, with all its variants.
  ///
  /// ```swift
  /// try await store.run { try responses.removeResponse(to: HTTPRequest(url: url)) }
  /// ```
  ///
  /// - Parameter request: A request, of which the URL counts.
  /// - Throws: A `StoreError`, as `Cache.remove(_:)`.
  /// - Complexity: One lookup and one append.
  public func removeResponse(to request: HTTPRequest) throws {
    if let key = Exchange.key(request) { try responses.remove(key) }
  }
}
