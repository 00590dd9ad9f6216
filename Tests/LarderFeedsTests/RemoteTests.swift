import AcceptanceRows
import Foundation
import LarderFeeds
import LarderTesting
import Testing

/// Every list feed maps the server's responses to items or typed errors.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct RemoteTests {
  @Test("A new loader has sent no request.", arguments: Feed.lists)
  func newLoaderHasSentNothing(feed: Feed) throws {
    let bench = try Bench(feed)

    #expect(bench.client.urls == [])
  }

  @Test("A load requests exactly its URL, once.", arguments: Feed.lists)
  func loadRequestsItsURL(feed: Feed) async throws {
    let bench = try Bench(feed, ScriptedClient(.reply(200, feed.payload(1))))

    _ = try await bench.handles.load(.remoteOnly, nil)

    #expect(bench.client.urls.map(\.absoluteString) == feed.urls)
  }

  @Test("Two pending loads are two requests.", arguments: Feed.lists)
  func twoLoadsAreTwoRequests(feed: Feed) async throws {
    let bench = try Bench(feed, ScriptedClient(last: .hold))
    let reply = ScriptedClient.Answer.reply(200, Data(feed.payload(1).utf8))

    async let first = bench.handles.load(nil, nil)
    async let second = bench.handles.load(nil, nil)
    try await bench.client.waitForHeldRequests(2)
    bench.client.release(0, with: reply)
    bench.client.release(1, with: reply)

    #expect(try await first.items == second.items)
    #expect(bench.client.urls.map(\.absoluteString) == feed.urls + feed.urls)
  }

  @Test(
    "Any failure of the client is connectivity.", arguments: Feed.lists,
    [URLError(.timedOut), URLError(.cancelled), HTTPClientError.unexpectedResponse] as [any Error])
  func clientFailureIsConnectivity(feed: Feed, failure: any Error) async throws {
    let bench = try Bench(feed, ScriptedClient(.fail(failure)))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .connectivity)
    #expect(bench.client.urls.count == 1)
  }

  @Test(
    "Any status but 200 is invalid data.", arguments: Feed.lists,
    [199, 201, 300, 400, 500])
  func statusIsInvalidData(feed: Feed, status: Int) async throws {
    try await expectInvalid(feed, status: status, feed.payload(1))
  }

  @Test(
    "A body that is not JSON is invalid data.", arguments: Feed.lists,
    ["not json", "", "{\"genres\":[", "/* c */", "\u{FF}"])
  func bodyThatIsNoJSONIsInvalidData(feed: Feed, body: String) async throws {
    try await expectInvalid(feed, body)
    try await expectInvalid(
      feed, feed.payload(1).replacing("]", with: "\n// and more\n]", maxReplacements: 1))
  }

  @Test("JSON without the list is invalid data.", arguments: Feed.lists)
  func listIsRequired(feed: Feed) async throws {
    let root = feed.root
    let bodies = [
      "{}", "[]", "null", "7", "{\"\(root)\":null}", "{\"\(root)\":{}}", "{\"\(root)\":7}",
      "[\(feed.json(1))]", "{\"\(root.uppercased())\":[]}",
    ]
    for body in bodies { try await expectInvalid(feed, body) }
  }

  @Test("One bad item makes the whole list invalid.", arguments: Feed.lists)
  func oneBadItemSpoilsTheList(feed: Feed) async throws {
    for field in feed.required {
      for value in [nil, NSNull(), ["wrong type"]] as [Any?] {
        let bad = try item(feed.json(2), with: field, set: value)
        try await expectInvalid(feed, feed.payload(of: [feed.json(1), bad]))
      }
    }
  }

  @Test("An empty list is a valid list.", arguments: Feed.lists)
  func emptyListIsAList(feed: Feed) async throws {
    let bench = try Bench(feed, ScriptedClient(.reply(200, "{\"\(feed.root)\":[]}")))

    #expect(try await bench.handles.load(nil, nil).items == [])
  }

  @Test("Items keep their order and duplicates; other fields are ignored.", arguments: Feed.lists)
  func itemsKeepOrderAndDuplicates(feed: Feed) async throws {
    let body = feed.payload(3, 1, 3, 2)
    let bench = try Bench(feed, ScriptedClient(.reply(200, body)))

    let loaded = try await bench.handles.load(nil, nil)

    #expect(loaded.items == bench.items(3, 1, 3, 2))
    #expect(!loaded.fromCache && loaded.savedAt == nil)
    #expect(loaded.isSaved == feed.isCached)
  }

  @Test("A completion runs once, whatever the result.", arguments: Feed.lists)
  func completionRunsOnce(feed: Feed) async throws {
    let steps: [(answer: ScriptedClient.Answer, isValid: Bool)] = [
      (.reply(200, feed.payload(1)), true), (.reply(500, ""), false),
      (.fail(URLError(.timedOut)), false),
    ]
    for (step, isValid) in steps {
      let bench = try Bench(feed, ScriptedClient(last: step))

      let result = try await completion { done in _ = bench.handles.start(nil, done) }

      if isValid {
        #expect(try result.get().items == bench.items(1))
      } else {
        #expect(throws: FeedError.self) { try result.get() }
      }
    }
  }

  private func expectInvalid(
    _ feed: Feed, status: Int = 200, _ body: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let bench = try Bench(feed, ScriptedClient(last: .reply(status, body)))

    let error = await feedError(
      { try await bench.handles.load(nil, nil) }, sourceLocation: sourceLocation)

    #expect(error?.reason == .invalidData, "\(body)", sourceLocation: sourceLocation)
    #expect(bench.client.urls.count == feed.attempts, sourceLocation: sourceLocation)
  }
}

/// An item's JSON with a field removed (nil) or replaced; a dot leads into an object.
func item(_ json: String, with field: String, set value: Any?) throws -> String {
  let parts = field.split(separator: ".").map(String.init)
  let parsed = try JSONSerialization.jsonObject(with: Data(json.utf8))
  var object = try #require(parsed as? [String: Any])
  if parts.count == 2 {
    var inner = try #require(object[parts[0]] as? [String: Any])
    inner[parts[1]] = value
    object[parts[0]] = inner
  } else {
    object[parts[0]] = value
  }
  return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
}
