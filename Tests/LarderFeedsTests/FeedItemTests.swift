import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Both image feeds read the optional and required fields of their items alike.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct FeedItemTests {
  private static let ids = (1...5).map { "0F3C2B52-6A3E-4D0B-9B0E-3C1C2D7E5A0\($0)" }
  private static let payload = """
    {"items":[
    {"id":"\(ids[0])","description":"Fog","location":"Quay 7","image":"https://host/a%20b.png"},
    {"id":"\(ids[1])","description":"Night market","image":"https://host/2.png"},
    {"id":"\(ids[2])","location":"North ridge","image":"https://host/3.png"},
    {"id":"\(ids[3])","description":null,"location":null,"image":"https://host/4.png"},
    {"id":"\(ids[4])","description":"","location":"","image":"https://host/5.png"}
    ],"next":{"cursor":7}}
    """
  private static let texts: [(description: String?, location: String?)] = [
    ("Fog", "Quay 7"), ("Night market", nil), (nil, "North ridge"), (nil, nil), ("", ""),
  ]

  @Test(
    "Feed items: missing and null become nil and empty stays empty, from server and cache.",
    arguments: StoreKind.allCases)
  func feedItems(kind: StoreKind) async throws {
    try await withStore(kind) { store in
      let loader = try EssentialFeedLoader.essentialFeed(
        at: Feed.base, client: ScriptedClient(.reply(200, Self.payload)), store: store)

      for isCached in [false, true] {
        let loaded = try await loader.load()
        let items = loaded.value

        #expect((loaded.origin != .loaded) == isCached)
        #expect(items.map(\.id.uuidString) == Self.ids, "\(isCached)")
        #expect(items.map(\.description) == Self.texts.map(\.description), "\(isCached)")
        #expect(items.map(\.location) == Self.texts.map(\.location), "\(isCached)")
        #expect(items.first?.imageURL.absoluteString == "https://host/a%20b.png", "\(isCached)")
      }
    }
  }

  @Test(
    "Feed images: missing and null become nil and empty stays empty, from server and cache.",
    arguments: StoreKind.allCases)
  func feedImages(kind: StoreKind) async throws {
    try await withStore(kind) { store in
      let loader = try ImageFeedLoader.imageFeed(
        at: Feed.base, client: ScriptedClient(.reply(200, Self.payload)), store: store)

      for isCached in [false, true] {
        let loaded = try await loader.load()
        let images = loaded.value

        #expect((loaded.origin != .loaded) == isCached)
        #expect(images.map(\.id.uuidString) == Self.ids, "\(isCached)")
        #expect(images.map(\.description) == Self.texts.map(\.description), "\(isCached)")
        #expect(images.map(\.location) == Self.texts.map(\.location), "\(isCached)")
        #expect(images.first?.url.absoluteString == "https://host/a%20b.png", "\(isCached)")
      }
    }
  }

  @Test(
    "An identifier that is not a UUID, or an image that is not a URL, is invalid data.",
    arguments: [Feed.essentialFeed, .imageFeed],
    [("id", "7"), ("id", ""), ("image", ""), ("image", "http://[bad")])
  func badFields(feed: Feed, field: (name: String, value: String)) async throws {
    let bad = try item(feed.json(1), with: field.name, set: field.value)
    let bench = try Bench(feed, ScriptedClient(.reply(200, feed.payload(of: [feed.json(2), bad]))))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .invalidData)
  }

  @Test(
    "A text of the wrong type is invalid data.", arguments: [Feed.essentialFeed, .imageFeed],
    ["description", "location"])
  func wrongType(feed: Feed, field: String) async throws {
    let bad = try item(feed.json(1), with: field, set: 7)
    let bench = try Bench(feed, ScriptedClient(.reply(200, feed.payload(of: [bad]))))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .invalidData)
  }

  private func withStore(_ kind: StoreKind, _ body: (Store) async throws -> Void) async throws {
    guard kind == .disk else { return try await body(.inMemory()) }
    let directory = try TemporaryDirectory()
    let store = try Store(at: URL(filePath: directory.path("store"), directoryHint: .isDirectory))
    try await body(store)
    try store.close()
  }
}
