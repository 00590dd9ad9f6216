import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// The article "Adding a feed" shows code that compiles and does what the article says.
@Suite(.timeLimit(.minutes(30))) struct ArticleTests {
  @Test("The article's code is the code that is tested here.")
  func text() throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent()
    let root = tests.deletingLastPathComponent().deletingLastPathComponent()
    let article = try String(
      contentsOf: root.appending(path: "Sources/LarderFeeds/Documentation.docc/AddingAFeed.md"),
      encoding: .utf8)
    let program = try String(
      contentsOf: tests.appending(path: "StationsArticle.swift"), encoding: .utf8)

    let block = try #require(article.firstMatch(of: /```swift\n((?s).*?)```/)?.1)
    #expect(program.hasSuffix("\n" + block))
    // One line before it says what it is.
    #expect(program.dropLast(block.count).split(separator: "\n").count == 1)
  }

  @Test("A load requests the URL of its country, and saves the list under it.")
  func load() async throws {
    let client = ScriptedClient(.reply(200, payload), .reply(200, #"{"stations":[]}"#))
    let loader = try open(client).loader

    let loaded = try await loader.load("fr")

    #expect(loaded.value == [nova] && loaded.isSaved)
    #expect(try await loader.load("is").value == [])
    #expect(
      client.urls.map(\.absoluteString)
        == ["https://radio.example.org/v1/stations/fr", "https://radio.example.org/v1/stations/is"])
    #expect(try loader.cache?.value(for: "fr") == [nova])
  }

  @Test("If the server fails twice, a list saved less than a day ago is delivered.")
  func fallback() async throws {
    let client = ScriptedClient(.reply(200, payload))
    let (loader, clock) = try open(client)
    _ = try await loader.load("fr")
    clock.advance(by: .seconds(86_399))

    let loaded = try await loader.load("fr")
    #expect(loaded.value == [nova] && loaded.remoteFailure == .connectivity)
    #expect(client.urls.count == 3)

    clock.advance(by: .seconds(1))
    let error = await feedError { try await loader.load("fr") }
    #expect(error?.reason == .connectivity)
    #expect(try await loader.load("fr", maxAge: .days(30)).value == [nova])
  }

  private let payload =
    #"{"stations":[{"id":7,"title":"Nova","stream_url":"https://s.example.org/7","bit":1}]}"#
  private let nova = Station(id: 7, name: "Nova", stream: web("https://s.example.org/7"))

  private func open(_ client: ScriptedClient) throws -> (loader: StationsLoader, ManualClock) {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let base = web("https://radio.example.org/v1")
    return (
      try .stations(from: base, client: client, store: .inMemory(options: options)), clock
    )
  }
}
