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
  let map: @Sendable (HTTPReply) throws -> Mapped

  /// The value that a reply holds, and how many items of the reply are not part of it.
  typealias Mapped = (value: Value, leftOut: Int)

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - url: The URL for an input. It is asked once per load: retries go to the same URL.
  ///   - map: The value that a reply holds. It judges the status code and the body; whatever it
  ///     throws is ``RemoteFailure/invalidData``.
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
  ///   - leftOut: How many items of a payload its value leaves out, see ``Loaded/leftOut``. 0 by
  ///     default.
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
