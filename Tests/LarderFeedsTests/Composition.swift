import FeedServer
import Foundation
import Larder
import LarderFeeds
import Testing

/// A feed with a real server, client and store: the values that it loads and saves.
struct Composition: Sendable, CustomTestStringConvertible {
  let name: String
  /// The path of its requests.
  let path: String
  /// Whether a fresh value of the cache is delivered without a request.
  let isCacheFirst: Bool
  /// The server's items, as a load delivers them.
  let sent: [String]
  /// A text on disk that only the old value has.
  let oldMark: String
  let open: @Sendable (URL, any HTTPClient, Store) throws -> Parts

  var testDescription: String { name }

  /// The operations of the loader.
  struct Parts: Sendable {
    let load: @Sendable (SourceOrder?) async throws -> Delivery
    let validate: @Sendable () throws -> ValidationReport?
    /// Puts ``old`` into the cache.
    let save: @Sendable () throws -> Void
    /// The value that ``save`` puts there, as a load delivers it.
    let old: [String]
  }
}

extension Composition {
  static let all = cacheFirst + remoteFirst
  static let cacheFirst = [genres, imageData]
  static let remoteFirst = [essentialFeed, characters, imageFeed]

  static let genres = Composition(
    name: "genres", path: FeedServer.genresPath, isCacheFirst: true,
    sent: Payloads.genres.map { text(Genre(id: $0.id, name: $0.name)) }, oldMark: "Old",
    open: { server, client, store in
      Parts(
        try GenresLoader.genres(from: server, client: client, store: store),
        old: [Genre(id: 1, name: "Old")])
    })

  static let essentialFeed = Composition(
    name: "essential feed", path: FeedServer.feedPath, isCacheFirst: false,
    sent: Payloads.feed.map { image in
      text(
        FeedItem(
          id: uuid(image.id), description: image.description, location: image.location,
          imageURL: web(image.image)))
    },
    oldMark: "Fog 1",
    open: { server, client, store in
      let url = server.appending(path: FeedServer.feedPath)
      return Parts(
        try EssentialFeedLoader.essentialFeed(at: url, client: client, store: store),
        old: [Feed.feedItem(1)])
    })

  static let characters = Composition(
    name: "characters", path: FeedServer.charactersPath, isCacheFirst: false,
    sent: Payloads.characters(page: 1).map { one in
      text(
        CharacterItem(
          id: one.id, name: one.name, status: one.status, species: one.species,
          origin: one.origin.name, imageURL: web(one.image)))
    },
    oldMark: "Doctor 1",
    open: { server, client, store in
      Parts(
        try CharactersLoader.characters(
          from: server, randomPage: { _ in 1 }, client: client, store: store),
        old: [Feed.character(1)])
    })

  /// Its items name the server, whose port changes: their texts are compared without the server.
  static let imageFeed = Composition(
    name: "image feed", path: FeedServer.imagesPath, isCacheFirst: false,
    sent: Payloads.images(at: "").map { "\(uuid($0.id)) \($0.image)" }, oldMark: "Fog 1",
    open: { server, client, store in
      let url = server.appending(path: FeedServer.imagesPath)
      return Parts(
        try ImageFeedLoader.imageFeed(at: url, client: client, store: store),
        old: [Feed.feedImage(1)], text: { "\($0.id) \($0.url.path)" })
    })

  static let imageData = Composition(
    name: "image data", path: FeedServer.imagePath(1), isCacheFirst: true,
    sent: [Payloads.imageBytes(1)?.base64EncodedString() ?? ""], oldMark: "old bytes",
    open: { server, client, store in
      let url = server.appending(path: FeedServer.imagePath(1))
      let loader = try ImageDataLoader.imageData(client: client, store: store)
      let old = Data("old bytes".utf8)
      return Parts(loader, url, key: url, old: old) { [$0.base64EncodedString()] }
    })

  private static func text(_ value: some Any) -> String { String(describing: value) }

  private static func uuid(_ text: String) -> UUID {
    guard let uuid = UUID(uuidString: text) else { preconditionFailure("\(text) is no UUID") }
    return uuid
  }
}

extension Composition.Parts {
  fileprivate init<Item>(
    _ loader: Loader<Void, String, [Item]>, old: [Item],
    text: @escaping @Sendable (Item) -> String = { String(describing: $0) }
  ) {
    self.init(loader, (), key: "all", old: old) { $0.map(text) }
  }

  fileprivate init<Input, Key, Value>(
    _ loader: Loader<Input, Key, Value>, _ input: Input, key: Key, old: Value,
    texts: @escaping @Sendable (Value) -> [String]
  ) {
    guard let cache = loader.cache else { preconditionFailure("a composition has a cache") }
    load = { order in
      var loader = loader
      if let order { loader.policy.order = order }
      let loaded = try await loader.load(input)
      return Delivery(loaded, items: texts(loaded.value))
    }
    validate = { try loader.validate() }
    save = { try cache.save(old, for: key) }
    self.old = texts(old)
  }
}
