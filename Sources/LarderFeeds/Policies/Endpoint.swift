public import Foundation
public import HTTPTypes

/// The request for a feed's value, and the mapping from its response to the value.
///
/// ```swift
/// let songs = Endpoint<String, [Song]>.json(RemoteSongs.self, at: searchURL) { $0.results }
/// ```
///
/// A feed consists of an endpoint, a cache and a ``LoadPolicy``. An endpoint is made from a URL,
/// which is requested by GET, or from a request with its own method, header fields and body.
public struct Endpoint<Input: Sendable, Value: Sendable>: Sendable {
  let load: @Sendable (Input, RequestSender) async throws -> Mapped

  /// What the responses to an endpoint's requests contain.
  struct Mapped: Sendable {
    let value: Value
    /// The number of items that the value leaves out.
    var leftOut = 0
    let exchanges: [Exchanged]
  }

  init(load: @escaping @Sendable (Input, RequestSender) async throws -> Mapped) {
    self.load = load
  }

  /// Makes an endpoint from a request.
  ///
  /// - Parameters:
  ///   - request: Returns the request for an input. Called once per load; retries send the same
  ///     request. If it throws, the load fails with ``RemoteFailure/Kind/connectivity``.
  ///   - body: Returns the body of the request; empty by default.
  ///   - map: Checks a response and its body, and returns its value. Any error it throws is
  ///     reported as ``RemoteFailure/Kind/invalidData``.
  public init(
    request: @escaping @Sendable (Input) throws -> HTTPRequest,
    body: @escaping @Sendable (Input) -> Data = { _ in Data() },
    map: @escaping @Sendable (HTTPResponse, Data) throws -> Value
  ) {
    self.init(request: request, body: body, mapped: { (try map($0, $1), 0) })
  }

  /// Makes an endpoint from a URL.
  ///
  /// - Parameters:
  ///   - url: Returns the absolute URL for an input. Called once per load; retries request the same
  ///     URL.
  ///   - map: As in ``init(request:body:map:)``.
  public init(
    url: @escaping @Sendable (Input) -> URL,
    map: @escaping @Sendable (HTTPResponse, Data) throws -> Value
  ) {
    self.init(request: { try HTTPRequest(get: url($0)) }, map: map)
  }

  private init(
    request: @escaping @Sendable (Input) throws -> HTTPRequest,
    body: @escaping @Sendable (Input) -> Data = { _ in Data() },
    mapped: @escaping @Sendable (HTTPResponse, Data) throws -> (Value, Int)
  ) {
    load = { input, sender in
      let request = try sender.make { try request(input) }
      return try await sender.send(request, body: body(input), isConditional: true) {
        let (value, leftOut) = try mapped($0, $1)
        return Mapped(
          value: value, leftOut: leftOut, exchanges: [Exchanged(request: request, response: $0)])
      }
    }
  }
}

/// A request, and the response to it.
struct Exchanged: Sendable {
  let request: HTTPRequest
  let response: HTTPResponse
}

// MARK: - JSON

extension Endpoint {
  /// Makes an endpoint that accepts responses with status 200 and JSON.
  ///
  /// Any other response is invalid data.
  ///
  /// Decoding is strict: one invalid item fails the whole response. Fields that `Remote` does not
  /// declare are ignored.
  ///
  /// - Parameters:
  ///   - remote: The payload's type.
  ///   - url: As in ``init(url:map:)``.
  ///   - decoder: Decodes the payloads, also several at a time; it must not be changed afterwards.
  ///     One with Foundation's defaults by default.
  ///   - model: Returns the value of a payload.
  ///   - leftOut: Returns the number of a payload's items that its value leaves out, see
  ///     ``Loaded/leftOut``. 0 by default.
  /// - Returns: The endpoint.
  public static func json<Remote: Decodable & SendableMetatype>(
    _ remote: Remote.Type, at url: @escaping @Sendable (Input) -> URL,
    decoder: JSONDecoder = JSONDecoder(),
    _ model: @escaping @Sendable (Remote) throws -> Value,
    leftOut: @escaping @Sendable (Remote) -> Int = { _ in 0 }
  ) -> Endpoint {
    json(
      remote, request: { try HTTPRequest(get: url($0)) }, decoder: decoder, model, leftOut: leftOut)
  }

  /// Makes an endpoint from a request that accepts responses with status 200 and JSON.
  ///
  /// - Parameters:
  ///   - remote: As in ``json(_:at:decoder:_:leftOut:)``.
  ///   - request: As in ``init(request:body:map:)``.
  ///   - body: As in ``init(request:body:map:)``.
  ///   - decoder: As in ``json(_:at:decoder:_:leftOut:)``.
  ///   - model: As in ``json(_:at:decoder:_:leftOut:)``.
  ///   - leftOut: As in ``json(_:at:decoder:_:leftOut:)``.
  /// - Returns: The endpoint.
  public static func json<Remote: Decodable & SendableMetatype>(
    _ remote: Remote.Type, request: @escaping @Sendable (Input) throws -> HTTPRequest,
    body: @escaping @Sendable (Input) -> Data = { _ in Data() },
    decoder: JSONDecoder = JSONDecoder(),
    _ model: @escaping @Sendable (Remote) throws -> Value,
    leftOut: @escaping @Sendable (Remote) -> Int = { _ in 0 }
  ) -> Endpoint {
    Endpoint(
      request: request, body: body,
      mapped: { response, data in
        let payload = try decoder.decode(Remote.self, from: accepted(response, data))
        return (try model(payload), leftOut(payload))
      })
  }
}

// MARK: - Bytes

extension Endpoint where Value == Data {
  /// Makes an endpoint that accepts responses with status 200 and at least one byte.
  ///
  /// Any other response is invalid data. The bytes are not checked.
  ///
  /// - Parameter url: As in ``init(url:map:)``.
  /// - Returns: The endpoint.
  public static func bytes(at url: @escaping @Sendable (Input) -> URL) -> Endpoint {
    Endpoint(url: url) { response, data in
      let body = try accepted(response, data)
      guard !body.isEmpty else { throw RemoteFailure(.invalidData) }
      return body
    }
  }
}

/// The body of a response with status 200.
func accepted(_ response: HTTPResponse, _ body: Data) throws(RemoteFailure) -> Data {
  guard response.status == .ok else { throw RemoteFailure(.invalidData) }
  return body
}
