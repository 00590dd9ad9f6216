import AcceptanceRows
import FeedServer
import Foundation
import Larder
import LarderFeeds
import Testing

/// All feeds work with a real server, the real client and a real store.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct FeedServerTests {
  @Test("The server's genres arrive, at least a hundred, with fields to ignore.")
  func genres() async throws {
    try await withServer { server in
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient.patient, store: .inMemory())

      let loaded = try await loader.load()

      #expect(loaded.value.count >= 100)
      #expect(loaded.value == Payloads.genres.map { Genre(id: $0.id, name: $0.name) })
      #expect(Set(loaded.value.map(\.id)).count == loaded.value.count)
      let text = try String(decoding: Payloads.genresJSON(), as: UTF8.self)
      #expect(text.contains("parent_id") && text.contains("took_ms"))
    }
  }

  @Test("The server's characters arrive, a hundred on each page.")
  func characters() async throws {
    try await withServer { server in
      let loader = try CharactersLoader.characters(
        from: server.url, randomPage: { $0.upperBound }, client: URLSessionClient.patient,
        store: .inMemory())

      let loaded = try await loader.load()

      let page = Payloads.characters(page: 42)
      #expect(loaded.value.count == 100)
      #expect(loaded.value.map(\.id) == page.map(\.id))
      #expect(loaded.value.map(\.origin) == page.map(\.origin.name))
      #expect(loaded.value.map(\.imageURL.absoluteString) == page.map(\.image))
    }
  }

  @Test("The server's feed arrives, with optional texts.")
  func essentialFeed() async throws {
    try await withServer { server in
      let loader = try EssentialFeedLoader.essentialFeed(
        at: server.url.appending(path: FeedServer.feedPath), client: URLSessionClient.patient,
        store: .inMemory())

      let loaded = try await loader.load()

      #expect(loaded.value.map(\.id) == Payloads.feed.map { UUID(uuidString: $0.id) })
      #expect(Set(loaded.value.map(\.id)).count == Payloads.feedCount)
      #expect(loaded.value.map(\.description) == Payloads.feed.map(\.description))
      #expect(loaded.value.map(\.location) == Payloads.feed.map(\.location))
      #expect(loaded.value.map(\.imageURL.absoluteString) == Payloads.feed.map(\.image))
      #expect(loaded.value.contains { $0.description == nil && $0.location == nil })
    }
  }

  @Test(
    "The server receives the term unchanged, and finds its items.",
    arguments: [
      "lantern keepers", "lamp+moth", "rust & rain", "100% weather", "AC/Quay", "JOS\u{E9}", "none",
    ])
  func search(term: String) async throws {
    try await withServer { server in
      let loader = MediaSearchLoader.mediaSearch(from: server.url, client: URLSessionClient.patient)

      let loaded = try await loader.load(term)

      let found = Payloads.songs(for: term)
      #expect(found.isEmpty == (term == "none"))
      #expect(loaded.value.map(\.trackName) == found.map(\.trackName))
      #expect(loaded.value.map(\.previewURL) == found.map(\.previewUrl))
      #expect(loaded.value.map(\.artworkUrl60) == found.map(\.artworkUrl60))
    }
  }

  @Test("The listed images arrive, and then come from the cache.")
  func images() async throws {
    try await withServer { server in
      let store = Store.inMemory()
      let feed = try ImageFeedLoader.imageFeed(
        at: server.url.appending(path: FeedServer.imagesPath), client: URLSessionClient.patient,
        store: store)
      let images = try ImageDataLoader.imageData(client: URLSessionClient.patient, store: store)

      let list = try await feed.load().value
      #expect(list.count == Payloads.imageCount)
      for (index, image) in list.enumerated() {
        let loaded = try await images.load(image.url)
        #expect(loaded.value == Payloads.imageBytes(index + 1) && loaded.origin == .loaded)
      }
      let asked = server.requests.count
      for (index, image) in list.enumerated() {
        #expect(try await images.load(image.url).value == Payloads.imageBytes(index + 1))
      }
      #expect(server.requests.count == asked)
    }
  }

  @Test(
    "Failures of image requests are told apart.",
    arguments: [
      (.status(500), .invalidData), (.status(404), .invalidData), (.empty, .invalidData),
      (.cut, .connectivity), (.wrongLength, .connectivity), (.endless, .connectivity),
    ] as [(Answer, RemoteFailure.Kind)])
  func imageFailures(answer: Answer, reason: RemoteFailure.Kind) async throws {
    try await withServer { server in
      server.answer(FeedServer.imagePath, with: [answer])
      let images = try ImageDataLoader.imageData(
        client: URLSessionClient.patient(maximumResponseBytes: 1 << 20), store: .inMemory())
      let url = server.url.appending(path: FeedServer.imagePath(1))

      let error = await feedError { try await images.load(url) }

      #expect(error?.reason == reason)
      #expect(try images.cache?.value(for: url) == nil)
    }
  }

  @Test("A cancelled image load ends its request on the server, and saves nothing.")
  func cancelledImage() async throws {
    try await withServer { server in
      let path = FeedServer.imagePath(7)
      server.answer(path, with: [.drip(milliseconds: 5)])
      let images = try ImageDataLoader.imageData(
        client: URLSessionClient.patient, store: .inMemory())
      let url = server.url.appending(path: path)

      let load = images.load(url) { _ in Issue.record("a cancelled load delivered something") }
      await server.arrived(1, path)
      load.cancel()

      await server.ended(1, path)
      #expect(try images.cache?.value(for: url) == nil)
    }
  }

  @Test(
    "Failures of requests are told apart.",
    arguments: [
      (.status(500), .invalidData), (.status(404), .invalidData), (.brokenJSON, .invalidData),
      (.empty, .invalidData), (.cut, .connectivity), (.wrongLength, .connectivity),
      (.redirectLoop, .connectivity), (.redirect(to: "file:///etc/passwd"), .connectivity),
      (.endless, .connectivity),
    ] as [(Answer, RemoteFailure.Kind)])
  func failures(answer: Answer, reason: RemoteFailure.Kind) async throws {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [answer])
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient.patient(maximumResponseBytes: 1 << 20),
        store: .inMemory())

      let error = await feedError { try await loader.load() }

      #expect(error?.reason == reason)
    }
  }

  @Test("A server that recovers gets a second request.")
  func recovery() async throws {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [.brokenJSON, .status(503), .payload])
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient.patient, store: .inMemory())

      #expect(try await loader.load().value.count == Payloads.genreCount)
      #expect(server.count(FeedServer.genresPath) == 3)
    }
  }

  @Test("A cancelled load cancels its request.")
  func cancellation() async throws {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [.drip(milliseconds: 5)])
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient.patient, store: .inMemory())

      let load = loader.load { _ in Issue.record("a cancelled load delivered something") }
      await server.arrived(1, FeedServer.genresPath)
      load.cancel()

      await server.ended(1, FeedServer.genresPath)
      #expect(try await loader.cached() == [])
    }
  }

  @Test(
    "The demo's command words select the server's responses.",
    arguments: [
      ("status:503", .status(503)), ("slow:20", .slow(milliseconds: 20)), ("cut", .cut),
      ("drip:5", .drip(milliseconds: 5)), ("redirect:http://a/b", .redirect(to: "http://a/b")),
      ("redirect-loop", .redirectLoop), ("nonsense", nil), ("status:x", nil), ("cut:1", nil),
      ("", nil),
    ] as [(String, Answer?)])
  func words(word: String, answer: Answer?) {
    #expect(Answer(word) == answer)
  }
}
