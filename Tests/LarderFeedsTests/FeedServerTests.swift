import FeedServer
import Foundation
import Larder
import LarderFeeds
import Testing

/// Both feeds, all the way: a real server, the real client, a real store.
@Suite(.timeLimit(.minutes(1))) struct FeedServerTests {
  @Test("GEN-01 GEN-25 the server's genres arrive, at least a hundred, with fields to ignore")
  func genres() async throws {
    try await withServer { server in
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient(), store: .inMemory())

      let loaded = try await loader.load()

      #expect(loaded.value.count >= 100)
      #expect(loaded.value == Payloads.genres.map { Genre(id: $0.id, name: $0.name) })
      #expect(Set(loaded.value.map(\.id)).count == loaded.value.count)
      let text = try String(decoding: Payloads.genresJSON(), as: UTF8.self)
      #expect(text.contains("parent_id") && text.contains("took_ms"))
    }
  }

  @Test("RAM-01 RAM-22 the server's characters arrive, a hundred on each page")
  func characters() async throws {
    try await withServer { server in
      let loader = try CharactersLoader.characters(
        from: server.url, randomPage: { $0.upperBound }, client: URLSessionClient(),
        store: .inMemory())

      let loaded = try await loader.load()

      let page = Payloads.characters(page: 42)
      #expect(loaded.value.count == 100)
      #expect(loaded.value.map(\.id) == page.map(\.id))
      #expect(loaded.value.map(\.origin) == page.map(\.origin.name))
      #expect(loaded.value.map(\.imageURL.absoluteString) == page.map(\.image))
    }
  }

  @Test(
    "GEN-12 GEN-18 GEN-19 GEN-20 GEN-23 failures over the wire are told apart",
    arguments: [
      (.status(500), .invalidData), (.status(404), .invalidData), (.brokenJSON, .invalidData),
      (.empty, .invalidData), (.cut, .connectivity), (.wrongLength, .connectivity),
      (.redirectLoop, .connectivity), (.redirect(to: "file:///etc/passwd"), .connectivity),
      (.endless, .connectivity),
    ] as [(Answer, RemoteFailure)])
  func failures(answer: Answer, reason: RemoteFailure) async throws {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [answer])
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient(maximumResponseBytes: 1 << 20),
        store: .inMemory())

      let error = await feedError { try await loader.load() }

      #expect(error?.reason == reason)
    }
  }

  @Test("GEN-29 a server that recovers is asked again")
  func recovery() async throws {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [.brokenJSON, .status(503), .payload])
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient(), store: .inMemory())

      #expect(try await loader.load().value.count == Payloads.genreCount)
      #expect(server.count(FeedServer.genresPath) == 3)
    }
  }

  @Test("a cancelled load cancels its request")
  func cancellation() async throws {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [.drip(milliseconds: 5)])
      let loader = try GenresLoader.genres(
        from: server.url, client: URLSessionClient(), store: .inMemory())

      let load = loader.load { _ in Issue.record("a cancelled load delivered something") }
      await server.arrived(1, FeedServer.genresPath)
      load.cancel()

      await server.ended(1, FeedServer.genresPath)
      #expect(try await loader.cached() == [])
    }
  }

  @Test(
    "the demo's words for answers",
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
