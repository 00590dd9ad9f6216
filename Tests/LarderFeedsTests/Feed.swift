import Foundation
import Larder
import LarderFeeds
import Testing

/// A feed of lists as the rows see it, whatever its type: items are known by their number.
struct Feed: Sendable, CustomTestStringConvertible {
  let name: String
  /// The field of the payload that holds the list.
  let root: String
  /// Where its loads go, in order.
  let urls: [String]
  /// What an item cannot do without; a dot leads into an object.
  let required: [String]
  /// How many attempts a load makes that gets invalid data.
  let attempts: Int
  /// An item's payload, in JSON, with all the fields that servers send.
  let json: @Sendable (Int) -> String
  let open: @Sendable (any HTTPClient, Store) throws -> Handles

  var testDescription: String { name }

  /// A whole payload with these items.
  func payload(_ ids: Int...) -> String { payload(of: ids.map(json)) }

  func payload(of items: [String]) -> String {
    "{\"took_ms\":4,\"\(root)\":[\(items.joined(separator: ","))],\"info\":{\"pages\":1}}"
  }
}

/// What can be done with a feed's loader.
struct Handles: Sendable {
  let load: @Sendable (SourceOrder?, MaxAge?) async throws -> Delivery
  let start: @Sendable (@escaping @Sendable (Result<Delivery, FeedError>) -> Void) -> Cancellable
  let cached: @Sendable (MaxAge?) async throws -> [String]
  let save: @Sendable ([Int]) throws(StoreError) -> Void
  let validate: @Sendable (MaxAge?) throws(StoreError) -> ValidationReport?
  let lookup: @Sendable () throws(StoreError) -> String
  let item: @Sendable (Int) -> String
}

/// What was loaded, its items as text.
struct Delivery: Sendable {
  let items: [String]
  let fromCache: Bool
  let savedAt: Date?
  let age: TimeInterval?
  let isSaved: Bool
  let saveFailure: StoreError?
  let remoteFailure: RemoteFailure?

  init<Item>(_ loaded: Loaded<[Item]>) {
    items = loaded.value.map { String(describing: $0) }
    fromCache = loaded.source == .cache
    savedAt = loaded.savedAt
    age = loaded.age
    isSaved = loaded.isSaved
    saveFailure = loaded.saveFailure
    remoteFailure = loaded.remoteFailure
  }
}

struct Cancellable: Sendable {
  let cancel: @Sendable () -> Void
}

extension Handles {
  init<Item: Sendable>(
    _ loader: Loader<Void, String, [Item]>, cache: Cache<String, [Item]>,
    item: @escaping @Sendable (Int) -> Item
  ) {
    load = { order, maxAge in
      var loader = loader
      if let order { loader.policy.order = order }
      return Delivery(try await loader.load(maxAge: maxAge))
    }
    start = { completion in
      let task = loader.load { completion($0.map(Delivery.init)) }
      return Cancellable { task.cancel() }
    }
    cached = { try await loader.cached(maxAge: $0).map { String(describing: $0) } }
    save = { ids throws(StoreError) in try cache.save(ids.map(item), for: "all") }
    validate = { maxAge throws(StoreError) in try loader.validate(maxAge: maxAge) }
    lookup = { () throws(StoreError) in
      switch try cache.lookup(for: "all") {
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
  static let all = [genres, characters]

  static let genres = Feed(
    name: "genres", root: "genres",
    urls: ["https://feeds.example.org:8443/base/api/v2/genres"], required: ["id", "name"],
    attempts: 3,
    json: { "{\"id\":\($0),\"name\":\"Genre \($0)\",\"parent_id\":300}" },
    open: { client, store in
      let loader = try GenresLoader.genres(from: base, client: client, store: store)
      return Handles(
        loader, cache: try #require(loader.cache), item: { Genre(id: $0, name: "Genre \($0)") })
    })

  static let characters = Feed(
    name: "characters", root: "results",
    urls: ["https://feeds.example.org:8443/base/api/character?page=7"],
    required: ["id", "name", "status", "species", "origin", "origin.name", "image"], attempts: 1,
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
      return Handles(loader, cache: try #require(loader.cache), item: character)
    })

  static let base = web("https://feeds.example.org:8443/base")

  static func character(_ id: Int) -> CharacterItem {
    CharacterItem(
      id: id, name: "Doctor \(id)", status: "Alive", species: "Alien", origin: "Dock \(id)",
      imageURL: web("https://api.example.org/\(id).jpeg"))
  }
}

/// A URL that a test writes down.
func web(_ text: String) -> URL {
  guard let url = URL(string: text) else { preconditionFailure("\(text) is not a URL") }
  return url
}
