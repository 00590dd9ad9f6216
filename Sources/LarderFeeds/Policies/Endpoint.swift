public import Foundation

/// Where a value comes from: one request, and what its reply means.
///
/// ```swift
/// let songs = Endpoint<String, [Song]>.json(RemoteSongs.self, at: searchURL) { $0.results }
/// ```
///
/// A feed is a value of this type, a cache and a ``LoadPolicy``.
public struct Endpoint<Input: Sendable, Value: Sendable>: Sendable {
  let url: @Sendable (Input) -> URL
  let map: @Sendable (HTTPReply) throws -> Value

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - url: The URL for an input. It is asked once per load: retries go to the same URL.
  ///   - map: The value that a reply holds. It judges the status code and the body; whatever it
  ///     throws is ``RemoteFailure/invalidData``.
  public init(
    url: @escaping @Sendable (Input) -> URL, map: @escaping @Sendable (HTTPReply) throws -> Value
  ) {
    self.url = url
    self.map = map
  }

  /// An endpoint that answers with status 200 and JSON.
  ///
  /// Anything else is invalid data.
  ///
  /// Decoding is strict: one bad item fails the whole reply. Fields that `Remote` does not name are
  /// ignored.
  ///
  /// - Parameters:
  ///   - remote: The payload's type, decoded with Foundation's defaults.
  ///   - url: As in ``init(url:map:)``.
  ///   - model: The value that a payload holds.
  /// - Returns: The endpoint.
  public static func json<Remote: Decodable & SendableMetatype>(
    _ remote: Remote.Type, at url: @escaping @Sendable (Input) -> URL,
    _ model: @escaping @Sendable (Remote) throws -> Value
  ) -> Endpoint {
    Endpoint(url: url) { try model(JSONDecoder().decode(Remote.self, from: accepted($0))) }
  }

  private static func accepted(_ reply: HTTPReply) throws(RemoteFailure) -> Data {
    guard reply.status == 200 else { throw .invalidData }
    return reply.body
  }
}

extension Endpoint where Value == Data {
  /// An endpoint that answers with status 200 and at least one byte, whatever the bytes mean.
  ///
  /// Anything else is invalid data.
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
