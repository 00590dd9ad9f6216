public import Foundation
public import Larder

/// A character of the show.
public struct CharacterItem: Codable, Hashable, Sendable {
  /// The server's number for the character.
  public var id: Int
  /// The character's name.
  public var name: String
  /// Whether the character lives, in the server's words: `Alive`, `Dead`, `unknown` or others.
  public var status: String
  /// What kind of being it is.
  public var species: String
  /// The name of the place it comes from.
  public var origin: String
  /// Where its picture is.
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

/// Loads random characters: from the server, or the last ones saved when the server fails.
public typealias CharactersLoader = Loader<Void, String, [CharacterItem]>

extension Loader where Input == Void, Key == String, Value == [CharacterItem] {
  /// A loader for a random page of a server that lists characters at `api/character?page=N`.
  ///
  /// - Parameters:
  ///   - base: The server's URL; a port and a path are kept. `https://rickandmortyapi.com` by
  ///     default.
  ///   - pages: The pages there are. 1 to 42 by default.
  ///   - randomPage: Picks a page. The system's random numbers by default.
  ///   - client: What sends the requests.
  ///   - store: The store whose cache `characters` holds the last page.
  ///   - maxAge: How old a saved page may be, for loads that do not say. Seven days by default.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, as `Store.cache`.
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

  /// A loader for characters at whatever URL a closure names.
  ///
  /// The server comes first, since the characters are to be different ones each time; the cache is
  /// for when it fails in any way. Saved characters are kept until others replace them: how old
  /// they may be is each load's affair.
  ///
  /// - Parameters:
  ///   - url: The URL to load from. It is asked anew for each load.
  ///   - client: What sends the requests.
  ///   - store: The store whose cache `characters` holds the last list.
  ///   - maxAge: How old a saved list may be, for loads that do not say. Seven days by default.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, as `Store.cache`.
  public static func characters(
    at url: @escaping @Sendable () -> URL, client: any HTTPClient, store: Store,
    maxAge: MaxAge = .days(7)
  ) throws -> CharactersLoader {
    var policy = LoadPolicy(.remoteThenCache)
    policy.maxAge = maxAge
    return CharactersLoader(
      .json(RemoteCharacters.self, at: url, \.models), client: client,
      cache: try store.cache("characters", of: [CharacterItem].self, lifetime: .unlimited),
      key: { "all" }, policy: policy)
  }

  /// The public server of the show's characters.
  public static var rickAndMorty: URL {
    guard let url = URL(string: "https://rickandmortyapi.com") else {
      preconditionFailure("a literal URL that does not parse")
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
