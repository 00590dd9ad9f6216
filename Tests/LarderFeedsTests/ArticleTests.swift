import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
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

  @Test("Stations under an hour are shown as they are; older ones when the server fails thrice.")
  func fallback() async throws {
    let client = ScriptedClient(.reply(200, payload))
    let (loader, clock, timer) = try open(client)
    _ = try await loader.load("fr")
    clock.advance(by: .seconds(3599))
    #expect(try await loader.load("fr").value == [nova])
    #expect(client.urls.count == 1)

    clock.advance(by: .seconds(1))
    async let loaded = loader.load("fr")
    for delay in [100, 200] {
      #expect(await timer.fire(.milliseconds(delay)) == 1)
    }
    let stale = try await loaded
    #expect(stale.value == [nova] && stale.isStale && stale.remoteFailure?.kind == .connectivity)
    #expect(client.urls.count == 4)
  }

  @Test("A server that takes longer than three seconds is not waited for.")
  func patience() async throws {
    let client = ScriptedClient(.reply(200, payload), last: .hold)
    let (loader, clock, timer) = try open(client)
    _ = try await loader.load("fr")
    clock.advance(by: .seconds(3600))
    async let loaded = loader.load("fr")
    try await client.waitForHeldRequests(1)
    #expect(await timer.fire(.seconds(3)) == 1)
    #expect(try await loaded.isRefreshing)
    client.release(1, with: .fail(URLError(.timedOut)))
  }

  private let payload =
    #"{"stations":[{"id":7,"title":"Nova","stream_url":"https://s.example.org/7","bit":1}]}"#
  private let nova = Station(id: 7, name: "Nova", stream: web("https://s.example.org/7"))

  private func open(
    _ client: ScriptedClient
  ) throws -> (loader: StationsLoader, ManualClock, HandLoadTimer) {
    let (clock, timer) = (ManualClock(), HandLoadTimer())
    var options = Store.Options()
    options.clock = clock
    options.loadTimer = timer.schedule
    options.random = { 0.5 }
    let base = web("https://radio.example.org/v1")
    return (
      try .stations(from: base, client: client, store: .inMemory(options: options)), clock, timer
    )
  }
}
