public import Foundation
public import Larder

/// A character of the show.
public struct CharacterItem: Codable, Hashable, Sendable {
  /// The server's identifier for the character.
  public var id: Int
  /// The character's name.
  public var name: String
  /// Whether the character is alive, in the server's words: `Alive`, `Dead`, `unknown` or others.
  public var status: String
  /// The character's species.
  public var species: String
  /// The name of the place the character comes from.
  public var origin: String
  /// The URL of the character's picture.
  public var imageURL: URL

  /// Makes a character.
  public init(
    id: Int, name: String, status: String, species: String, origin: String, imageURL: URL
  ) {
    self.id = id
    self.name = name
    self.status = status
    self.species = species
    self.origin = origin
    self.imageURL = imageURL
  }
}

/// Loads random characters from the server, or the last saved ones if the server fails.
public typealias CharactersLoader = Loader<Void, String, [CharacterItem]>

extension Loader where Input == Void, Key == String, Value == [CharacterItem] {
  /// Makes a loader for random pages of the characters that a server lists at
  /// `api/character?page=N`.
  ///
  /// - Parameters:
  ///   - base: The server's URL, which may have a port and a path. `https://rickandmortyapi.com` by
  ///     default.
  ///   - pages: The range of page numbers. 1 to 42 by default.
  ///   - randomPage: Picks a page for each load. The system's random numbers by default.
  ///   - client: The client that sends the requests.
  ///   - store: The store whose cache `characters` holds the last page.
  ///   - maxAge: The maximum age of a saved page, for loads without one of their own. Seven days by
  ///     default.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, like `Store.cache`.
  public static func characters(
    from base: URL = rickAndMorty, pages: ClosedRange<Int> = 1...42,
    randomPage: @escaping @Sendable (ClosedRange<Int>) -> Int = { .random(in: $0) },
    client: any HTTPClient, store: Store, maxAge: MaxAge = .days(7)
  ) throws -> CharactersLoader {
    let list = base.appending(path: "api/character")
    return try characters(
      at: {
        list.appending(queryItems: [URLQueryItem(name: "page", value: "\(randomPage(pages))")])
      }, client: client, store: store, maxAge: maxAge)
  }

  /// Makes a loader for characters at the URL that a closure returns.
  ///
  /// A load asks the server first, so that each load delivers different characters, and reads the
  /// cache only if the server fails. Saved characters are kept until others replace them; each load
  /// decides how old they may be.
  ///
  /// - Parameters:
  ///   - url: Returns the URL to load from. Called once per load.
  ///   - client: The client that sends the requests.
  ///   - store: The store whose cache `characters` holds the last list.
  ///   - maxAge: The maximum age of a saved list, for loads without one of their own. Seven days by
  ///     default.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, like `Store.cache`.
  public static func characters(
    at url: @escaping @Sendable () -> URL, client: any HTTPClient, store: Store,
    maxAge: MaxAge = .days(7)
  ) throws -> CharactersLoader {
    var policy = LoadPolicy(.remoteThenCache)
    policy.loading.maxAge = maxAge
    return CharactersLoader(
      .json(RemoteCharacters.self, at: url, \.models), client: client,
      cache: try store.cache("characters", of: [CharacterItem].self, lifetime: .unlimited),
      key: { "all" }, policy: policy)
  }

  /// The URL of the public server of the show's characters.
  public static var rickAndMorty: URL {
    guard let url = URL(string: "https://rickandmortyapi.com") else {
      preconditionFailure("the literal URL is invalid")
    }
    return url
  }
}

private struct RemoteCharacters: Decodable {
  struct Item: Decodable {
    struct Origin: Decodable {
      var name: String
    }
    var id: Int
    var name: String
    var status: String
    var species: String
    var origin: Origin
    var image: URL
  }
  var results: [Item]
  var models: [CharacterItem] {
    results.map {
      CharacterItem(
        id: $0.id, name: $0.name, status: $0.status, species: $0.species, origin: $0.origin.name,
        imageURL: $0.image)
    }
  }
}
