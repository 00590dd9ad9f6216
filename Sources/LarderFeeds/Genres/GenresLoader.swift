public import Foundation
public import Larder

/// A podcast genre.
public struct Genre: Codable, Hashable, Sendable {
  /// The server's identifier for the genre.
  public var id: Int
  /// The genre's name.
  public var name: String

  /// Makes a genre.
  public init(id: Int, name: String) {
    self.id = id
    self.name = name
  }
}

/// Loads the podcast genres of one server, from the cache until they are seven days old.
public typealias GenresLoader = Loader<Void, String, [Genre]>

extension Loader where Input == Void, Key == String, Value == [Genre] {
  /// Makes a loader for the genres that a server lists at `api/v2/genres`.
  ///
  /// The cached list is delivered without a request until it is seven days old: genres hardly
  /// change, and a client that starts offline shows them at once. A load retries twice after
  /// invalid data, because servers recover from that by themselves.
  ///
  /// - Parameters:
  ///   - base: The server's URL, which may have a port and a path.
  ///   - client: The client that sends the requests.
  ///   - store: The store whose cache `genres` holds the list.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, like `Store.cache`.
  public static func genres(
    from base: URL, client: any HTTPClient, store: Store
  ) throws -> GenresLoader {
    var policy = LoadPolicy(.cacheThenRemote)
    policy.loading.retries = Loading.Retries(extra: 2, first: .zero)
    policy.retriesAfter = [.invalidData]
    return GenresLoader(
      .json(RemoteGenres.self, at: { base.appending(path: "api/v2/genres") }, \.models),
      client: client, cache: try store.cache("genres", of: [Genre].self, lifetime: .days(7)),
      key: { "all" }, policy: policy)
  }
}

private struct RemoteGenres: Decodable {
  struct Item: Decodable {
    var id: Int
    var name: String
  }
  var genres: [Item]
  var models: [Genre] { genres.map { Genre(id: $0.id, name: $0.name) } }
}
