import FeedServer
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import Testing

/// A hostile server causes a typed error within the limits, or a fallback to saved values.
///
/// The tests run one after another: each blocks a thread of the tests' server.
@Suite(.serialized, .timeLimit(.minutes(30))) struct HostileServerTests {
  @Test("A hostile response is a typed error, and nothing is saved.", arguments: Hostile.all)
  func error(hostile: Hostile) async throws {
    for composition in victims(of: hostile) {
      try await withServer { server in
        server.answer(composition.path, with: [hostile.answer])
        let client = WitnessClient(hostile.client)
        let parts = try composition.open(server.url, client, .inMemory())

        let error = await feedError { try await parts.load(nil) }

        guard case .remote(let failure, cache: nil) = error, failure.kind == hostile.reason else {
          return unexpected(error)
        }
        #expect(client.refusals == (hostile.refusal.map { [$0] } ?? []))
        let saved = await feedError { try await parts.load(.cacheOnly) }
        guard case .notFound = saved else { return unexpected(saved) }
      }
    }
  }

  @Test("A hostile response does not hide saved values.", arguments: Hostile.all)
  func fallback(hostile: Hostile) async throws {
    try await withServer { server in
      let composition = Composition.essentialFeed
      server.answer(composition.path, with: [hostile.answer])
      let client = WitnessClient(hostile.client)
      let parts = try composition.open(server.url, client, .inMemory())
      try parts.save()

      let loaded = try await parts.load(nil)

      #expect(loaded.items == parts.old && loaded.failure == hostile.reason)
      #expect(client.refusals == (hostile.refusal.map { [$0] } ?? []))
    }
  }

  /// What goes beyond may be taken for the answer to the next request on that connection: it is the
  /// same server's word either way.
  @Test("A body that is longer than declared ends at its declared length.")
  func moreThanDeclared() async throws {
    try await withServer { server in
      let answer = Answer.reply(
        status: 200, body: Data("abcdef".utf8), headers: ["Content-Length": "3"])
      server.answer(FeedServer.imagePath, with: [answer])
      let images = try ImageDataLoader.imageData(
        client: URLSessionClient.patient, store: .inMemory())

      let loaded = try await images.load(server.url.appending(path: FeedServer.imagePath(1)))

      #expect(loaded.value == Data("abc".utf8))
    }
  }

  @Test("A list that is longer than declared is cut at its declared length, and invalid.")
  func moreThanDeclaredOfAList() async throws {
    try await withServer { server in
      let answer = Answer.reply(
        status: 200, body: Data(#"{"items":[]}"#.utf8), headers: ["Content-Length": "11"])
      server.answer(FeedServer.feedPath, with: [answer])
      let client = WitnessClient(URLSessionClient.patient)
      let parts = try Composition.essentialFeed.open(server.url, client, .inMemory())

      let error = await feedError { try await parts.load(nil) }

      #expect(error?.reason == .invalidData && client.refusals == [])
    }
  }

  @Test("A body over the limit is not held in memory.")
  func memory() async {
    // In another process, which does nothing else.
    await #expect(processExitsWith: .success) {
      let answers = Hostile.sizes.map(\.answer)
      var least = 0
      for answer in [.payload] + answers {
        try await withServer { server in
          server.answer(FeedServer.imagePath, with: [answer])
          let client = URLSessionClient.patient(maximumResponseBytes: Hostile.limit)
          do {
            _ = try await client.get(server.url.appending(path: FeedServer.imagePath(1)))
            #expect(answer == .payload)
          } catch {
            #expect(error as? HTTPClientError == .responseTooLarge(limit: Hostile.limit))
          }
        }
        // The memory of a first request is not that of its response.
        if least == 0 { least = peakMemory() }
      }
      #expect(peakMemory() - least < 32 << 20)
    }
  }

  /// The feeds to which a response is hostile: a list, and bytes.
  private func victims(of hostile: Hostile) -> [Composition] {
    hostile.isJSON ? [.genres] : [.genres, .imageData]
  }
}
