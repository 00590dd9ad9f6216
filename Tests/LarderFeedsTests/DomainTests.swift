import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

/// Each domain has its own URLs, and reads its own fields.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct DomainTests {
  @Test(
    "The genres' path is appended to the server's own port and path.",
    arguments: [
      ("https://host", "https://host/api/v2/genres"),
      ("https://host/", "https://host/api/v2/genres"),
      ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x/api/v2/genres"),
    ])
  func genresURL(base: String, expected: String) async throws {
    let client = ScriptedClient()
    let loader = try GenresLoader.genres(from: web(base), client: client, store: .inMemory())

    _ = await feedError { try await loader.load() }

    #expect(client.urls.map(\.absoluteString) == [expected])
  }

  @Test("Each load asks for its URL anew.", arguments: [1, 2, 3] as [UInt64])
  func randomPages(seed: UInt64) async throws {
    let random = Mutex(SplitMix64(seed: seed))
    let client = ScriptedClient(last: .reply(200, Feed.characters.payload(2, 1)))
    let loader = try CharactersLoader.characters(
      randomPage: { pages in random.withLock { Int.random(in: pages, using: &$0) } },
      client: client, store: .inMemory())

    for _ in 1...5 {
      #expect(try await loader.load().value == [Feed.character(2), Feed.character(1)])
    }

    var same = SplitMix64(seed: seed)
    let pages = (1...5).map { _ in Int.random(in: 1...42, using: &same) }
    #expect(Set(pages).count > 1)
    #expect(
      client.urls.map(\.absoluteString)
        == pages.map { "https://rickandmortyapi.com/api/character?page=\($0)" })
  }

  @Test("By default each load requests a random page of all pages.")
  func randomPagesByDefault() async throws {
    var requests: [[String]] = []
    for _ in 1...2 {
      let client = ScriptedClient()
      var loader = try CharactersLoader.characters(client: client, store: .inMemory())
      loader.policy.order = .remoteOnly
      for _ in 1...600 { _ = await feedError { try await loader.load() } }
      requests.append(client.urls.map(\.absoluteString))
    }

    // By chance, a page is missing once in 10^10 runs of this test.
    let pages = (1...42).map { "https://rickandmortyapi.com/api/character?page=\($0)" }
    #expect(Set(requests.joined()) == Set(pages))
    #expect(requests[0] != requests[1])
  }

  @Test("A caller may provide any URL.")
  func anyURL() async throws {
    let count = Counter()
    let client = ScriptedClient()
    let loader = try CharactersLoader.characters(
      at: { web("https://host/\(count.next())") }, client: client, store: .inMemory())

    _ = await feedError { try await loader.load() }
    _ = await feedError { try await loader.load() }

    #expect(client.urls == [web("https://host/1"), web("https://host/2")])
  }

  @Test("Only the model's fields are read, and kept as they are.")
  func characterFields() async throws {
    let body = """
      {"info":7,"results":[{"id":1,"name":"N","status":"Presumed Dead","species":"S","type":null,
      "gender":9,"origin":{"name":"","url":7},"location":[],"image":"https://host/a%20b.png",
      "episode":"none","url":{},"created":false}]}
      """
    let loader = try CharactersLoader.characters(
      client: ScriptedClient(.reply(200, body)), store: .inMemory())

    let expected = CharacterItem(
      id: 1, name: "N", status: "Presumed Dead", species: "S", origin: "",
      imageURL: web("https://host/a%20b.png"))
    #expect(try await loader.load().value == [expected])
  }

  @Test(
    "An image that is not a URL, or an origin that is not an object, is invalid data.",
    arguments: [("image", ""), ("image", "http://[bad"), ("origin", "Earth")])
  func badFields(field: String, value: String) async throws {
    let bad = try item(Feed.characters.json(1), with: field, set: value)
    let bench = try Bench(
      .characters, ScriptedClient(.reply(200, Feed.characters.payload(of: [bad]))))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .invalidData)
  }

  @Test("A program can catch one case of an error and let the others pass.")
  func partialCatch() throws {
    func loader(over store: Store) throws -> GenresLoader? {
      do {
        let loader = try GenresLoader.genres(
          from: Feed.base, client: ScriptedClient(), store: store)
        try loader.validate()
        return loader
      } catch StoreError.closed {
        return nil
      }
    }
    let store = Store.inMemory()
    #expect(try loader(over: store) != nil)

    try store.close()
    #expect(try loader(over: store) == nil)
  }

  @Test("Feeds share one store, each with its own cache.")
  func oneStore() async throws {
    let store = Store.inMemory()
    let genres = try GenresLoader.genres(from: Feed.base, client: ScriptedClient(), store: store)
    let characters = try CharactersLoader.characters(client: ScriptedClient(), store: store)
    let feed = try EssentialFeedLoader.essentialFeed(
      at: Feed.base, client: ScriptedClient(), store: store)
    let images = try ImageFeedLoader.imageFeed(
      at: Feed.base, client: ScriptedClient(), store: store)
    let bytes = try ImageDataLoader.imageData(client: ScriptedClient(), store: store)

    try genres.cache?.save([Genre(id: 1, name: "a")], for: "all")
    try characters.cache?.removeAll()

    try feed.cache?.save([Feed.feedItem(1)], for: "all")
    try images.cache?.save([Feed.feedImage(2)], for: "all")

    #expect([genres.cache?.name, characters.cache?.name] == ["genres", "characters"])
    #expect([feed.cache?.name, images.cache?.name] == ["essential-feed", "image-feed"])
    #expect(bytes.cache?.name == "image-data")
    #expect(try await feed.cached() == [Feed.feedItem(1)])
    #expect(try await images.cached() == [Feed.feedImage(2)])
    #expect(try await genres.cached() == [Genre(id: 1, name: "a")])
    #expect(try await characters.cached() == [])
  }
}
