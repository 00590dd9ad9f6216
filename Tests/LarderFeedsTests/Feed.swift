import Foundation
import Larder
import LarderFeeds
import Testing

/// A list feed without its type: tests identify items by number.
struct Feed: Sendable, CustomTestStringConvertible {
  let name: String
  /// The field of the payload that holds the list.
  let root: String
  /// The URLs that its loads request, in order.
  let urls: [String]
  /// The required fields of an item; a dot leads into an object.
  let required: [String]
  /// How many attempts a load makes if the data is invalid.
  var attempts = 1
  /// Whether loads are saved, and can be repeated from the cache.
  var isCached = true
  /// Whether the cache keeps lists without a limit, so that only a maximum age can expire one.
  var isKept = false
  /// The maximum age to pass for a limit of seven days, if that is not the default.
  var sevenDays: MaxAge?
  /// The JSON of an item, with all fields that servers send.
  let json: @Sendable (Int) -> String
  let open: @Sendable (any HTTPClient, Store) throws -> Handles

  var testDescription: String { name }

  /// A payload with these items.
  func payload(_ ids: Int...) -> String { payload(of: ids.map(json)) }

  func payload(of items: [String]) -> String {
    "{\"took_ms\":4,\"\(root)\":[\(items.joined(separator: ","))],\"info\":{\"pages\":1}}"
  }
}

/// The operations of a feed's loader.
struct Handles: Sendable {
  let load: @Sendable (SourceOrder?, MaxAge?) async throws -> Delivery
  let start:
    @Sendable (SourceOrder?, @escaping @Sendable (Result<Delivery, FeedError>) -> Void) ->
      Cancellable
  let cached: @Sendable (MaxAge?) async throws -> [String]
  let save: @Sendable ([Int]) throws -> Void
  let validate: @Sendable (MaxAge?) throws -> ValidationReport?
  let lookup: @Sendable () throws -> String
  let item: @Sendable (Int) -> String
}

/// The result of a load, with its items as text.
struct Delivery: Sendable {
  let items: [String]
  let fromCache: Bool
  let savedAt: Date?
  let age: Duration?
  let isSaved: Bool
  let saveFailure: StoreError?
  let failure: RemoteFailure.Kind?

  init<Item>(_ loaded: Loaded<[Item]>) {
    self.init(loaded, items: loaded.value.map { String(describing: $0) })
  }

  init<Value>(_ loaded: Loaded<Value>, items: [String]) {
    self.items = items
    fromCache = loaded.origin != .loaded
    savedAt = loaded.savedAt
    age = loaded.age
    isSaved = loaded.isSaved
    saveFailure = loaded.saveFailure
    failure = loaded.remoteFailure?.kind
  }
}

struct Cancellable: Sendable {
  let cancel: @Sendable () -> Void
}

extension Handles {
  /// Tests do not call `save` or `lookup` for a loader without a cache.
  init<Input, Item: Sendable>(
    _ loader: Loader<Input, String, [Item]>, _ input: Input,
    item: @escaping @Sendable (Int) -> Item
  ) {
    let cache = loader.cache
    load = { order, maxAge in
      var loader = loader
      if let order { loader.policy.order = order }
      return Delivery(try await loader.load(input, maxAge: maxAge))
    }
    start = { order, completion in
      var loader = loader
      if let order { loader.policy.order = order }
      let task = loader.load(input) { completion($0.map(Delivery.init)) }
      return Cancellable { task.cancel() }
    }
    cached = { try await loader.cached(input, maxAge: $0).map { String(describing: $0) } }
    save = { ids in
      guard let cache else { preconditionFailure("a feed without a cache saves nothing") }
      try cache.save(ids.map(item), for: "all")
    }
    validate = { try loader.validate(maxAge: $0) }
    lookup = {
      switch try cache?.lookup(for: "all") {
      case nil: "no cache"
      case .fresh: "fresh"
      case .stale: "stale"
      case .expired: "expired"
      case .missing: "missing"
      }
    }
    self.item = { String(describing: item($0)) }
  }
}

extension Feed {
  /// The feeds with a cache.
  static let all = remoteFirst + [genres]

  /// The feeds with a cache that request the server first.
  static let remoteFirst = [characters, essentialFeed, imageFeed]

  /// All feeds, with or without a cache.
  static let lists = all + [mediaSearch]

  static let genres = Feed(
    name: "genres", root: "genres",
    urls: ["https://feeds.example.org:8443/base/api/v2/genres"], required: ["id", "name"],
    attempts: 3,
    json: { "{\"id\":\($0),\"name\":\"Genre \($0)\",\"parent_id\":300}" },
    open: { client, store in
      let loader = try GenresLoader.genres(from: base, client: client, store: store)
      return Handles(loader, (), item: { Genre(id: $0, name: "Genre \($0)") })
    })

  static let characters = Feed(
    name: "characters", root: "results",
    urls: ["https://feeds.example.org:8443/base/api/character?page=7"],
    required: ["id", "name", "status", "species", "origin", "origin.name", "image"],
    isKept: true,
    json: { id in
      """
      {"id":\(id),"name":"Doctor \(id)","status":"Alive","species":"Alien","type":"","gender":"x",\
      "origin":{"name":"Dock \(id)","url":""},"location":{"name":"y","url":""},\
      "image":"https://api.example.org/\(id).jpeg","episode":[],"created":"2019"}
      """
    },
    open: { client, store in
      let loader = try CharactersLoader.characters(
        from: base, randomPage: { _ in 7 }, client: client, store: store)
      return Handles(loader, (), item: character)
    })

  static let essentialFeed = Feed(
    name: "essential feed", root: "items", urls: ["https://feeds.example.org/v1/feed?limit=10"],
    required: ["id", "image"], isKept: true, sevenDays: .days(7), json: imageJSON,
    open: { client, store in
      let loader = try EssentialFeedLoader.essentialFeed(
        at: web("https://feeds.example.org/v1/feed?limit=10"), client: client, store: store)
      return Handles(loader, (), item: feedItem)
    })

  static let imageFeed = Feed(
    name: "image feed", root: "items", urls: ["https://img.example.org/list"],
    required: ["id", "image"], json: imageJSON,
    open: { client, store in
      let loader = try ImageFeedLoader.imageFeed(
        at: web("https://img.example.org/list"), client: client, store: store)
      return Handles(loader, (), item: feedImage)
    })

  static let mediaSearch = Feed(
    name: "media search", root: "results",
    urls: ["https://itunes.apple.com/search?term=jack+johnson"],
    required: ["trackName", "artistName", "collectionName"], isCached: false,
    json: { id in
      """
      {"wrapperType":"track","trackId":\(id),"trackName":"Track \(id)","artistName":"Artist",\
      "collectionName":"Album \(id)","previewUrl":"https://audio.example.org/\(id).m4a",\
      "artworkUrl30":7,"artworkUrl60":"a/60/\(id)","artworkUrl100":"a/100/\(id)","country":"USA"}
      """
    },
    open: { client, _ in
      Handles(MediaSearchLoader.mediaSearch(client: client), "jack johnson", item: mediaItem)
    })

  static let base = web("https://feeds.example.org:8443/base")

  static func character(_ id: Int) -> CharacterItem {
    CharacterItem(
      id: id, name: "Doctor \(id)", status: "Alive", species: "Alien", origin: "Dock \(id)",
      imageURL: web("https://api.example.org/\(id).jpeg"))
  }
}

/// Items of the image feeds, with the same payload; every second one has no location.
extension Feed {
  static func feedItem(_ id: Int) -> FeedItem {
    FeedItem(
      id: uuid(id), description: "Fog \(id)", location: id % 2 == 0 ? nil : "Quay \(id)",
      imageURL: web("https://img.example.org/\(id).png"))
  }

  static func feedImage(_ id: Int) -> FeedImage {
    FeedImage(
      id: uuid(id), description: "Fog \(id)", location: id % 2 == 0 ? nil : "Quay \(id)",
      url: web("https://img.example.org/\(id).png"))
  }

  static func mediaItem(_ id: Int) -> MediaItem {
    MediaItem(
      trackName: "Track \(id)", artistName: "Artist", collectionName: "Album \(id)",
      artworkUrl100: "a/100/\(id)", artworkUrl60: "a/60/\(id)",
      previewURL: "https://audio.example.org/\(id).m4a")
  }

  @Sendable private static func imageJSON(_ id: Int) -> String {
    """
    {"id":"\(uuid(id).uuidString.lowercased())","description":"Fog \(id)",\
    \(id % 2 == 0 ? "" : "\"location\":\"Quay \(id)\",")\
    "image":"https://img.example.org/\(id).png","likes":\(id)}
    """
  }

  private static func uuid(_ id: Int) -> UUID {
    let byte = UInt8(truncatingIfNeeded: id)
    return UUID(uuid: (0x0F, 0x3C, 0, 0, 0, 0, 0x4D, 0, 0x9B, 0, 0, 0, 0, 0, 0, byte))
  }
}

/// A URL from a literal.
func web(_ text: String) -> URL {
  guard let url = URL(string: text) else { preconditionFailure("\(text) is not a URL") }
  return url
}
