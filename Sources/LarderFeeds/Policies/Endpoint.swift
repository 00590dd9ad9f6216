public import Foundation

/// The request for a feed's value, and the mapping from its reply to the value.
///
/// ```swift
/// let songs = Endpoint<String, [Song]>.json(RemoteSongs.self, at: searchURL) { $0.results }
/// ```
///
/// A feed consists of an endpoint, a cache and a ``LoadPolicy``.
public struct Endpoint<Input: Sendable, Value: Sendable>: Sendable {
  let url: @Sendable (Input) -> URL
  let map: @Sendable (HTTPReply) throws -> Mapped

  /// The value of a reply, and the number of the reply's items that the value leaves out.
  typealias Mapped = (value: Value, leftOut: Int)

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - url: Returns the URL for an input. Called once per load; retries request the same URL.
  ///   - map: Checks a reply's status code and body, and returns the reply's value. Any error it
  ///     throws is reported as ``RemoteFailure/invalidData``.
  public init(
    url: @escaping @Sendable (Input) -> URL, map: @escaping @Sendable (HTTPReply) throws -> Value
  ) {
    self.init(url: url, mapped: { (try map($0), 0) })
  }

  private init(
    url: @escaping @Sendable (Input) -> URL,
    mapped: @escaping @Sendable (HTTPReply) throws -> Mapped
  ) {
    self.url = url
    self.map = mapped
  }

  /// Makes an endpoint that accepts replies with status 200 and JSON.
  ///
  /// Any other reply is invalid data.
  ///
  /// Decoding is strict: one invalid item fails the whole reply. Fields that `Remote` does not
  /// declare are ignored.
  ///
  /// - Parameters:
  ///   - remote: The payload's type, decoded with Foundation's defaults.
  ///   - url: As in ``init(url:map:)``.
  ///   - model: Returns the value of a payload.
  ///   - leftOut: Returns the number of a payload's items that its value leaves out, see
  ///     ``Loaded/leftOut``. 0 by default.
  /// - Returns: The endpoint.
  public static func json<Remote: Decodable & SendableMetatype>(
    _ remote: Remote.Type, at url: @escaping @Sendable (Input) -> URL,
    _ model: @escaping @Sendable (Remote) throws -> Value,
    leftOut: @escaping @Sendable (Remote) -> Int = { _ in 0 }
  ) -> Endpoint {
    Endpoint(
      url: url,
      mapped: { reply in
        let payload = try JSONDecoder().decode(Remote.self, from: accepted(reply))
        return (try model(payload), leftOut(payload))
      })
  }

  private static func accepted(_ reply: HTTPReply) throws(RemoteFailure) -> Data {
    guard reply.status == 200 else { throw .invalidData }
    return reply.body
  }
}

extension Endpoint where Value == Data {
  /// Makes an endpoint that accepts replies with status 200 and at least one byte.
  ///
  /// Any other reply is invalid data. The bytes are not checked.
  ///
  /// - Parameter url: As in ``init(url:map:)``.
  /// - Returns: The endpoint.
  public static func bytes(at url: @escaping @Sendable (Input) -> URL) -> Endpoint {
    Endpoint(url: url) { reply in
      let body = try accepted(reply)
      guard !body.isEmpty else { throw RemoteFailure.invalidData }
      return body
    }
  }
}
