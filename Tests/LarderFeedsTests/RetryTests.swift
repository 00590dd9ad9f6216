import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// Invalid data of genres is requested twice more.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct RetryTests {
  private let valid = ScriptedClient.Answer.reply(200, Feed.genres.payload(1, 2))
  private let invalid = ScriptedClient.Answer.reply(200, "no json")

  @Test("The second attempt's data is delivered.")
  func secondAttempt() async throws {
    let bench = try Bench(.genres, ScriptedClient(invalid, valid))

    #expect(try await bench.handles.load(nil, nil).items == bench.items(1, 2))
    #expect(bench.client.urls.count == 2)
  }

  @Test("The third attempt's data is delivered, and no failure.")
  func thirdAttempt() async throws {
    let bench = try Bench(.genres, ScriptedClient(invalid, invalid, valid))

    let result = try await completion { done in _ = bench.handles.start(nil, done) }

    #expect(try result.get().items == bench.items(1, 2))
    #expect(bench.client.urls.count == 3)
  }

  @Test("There is no fourth attempt.")
  func noFourthAttempt() async throws {
    let bench = try Bench(.genres, ScriptedClient(invalid, invalid, invalid, valid))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .invalidData)
    #expect(bench.client.urls.count == 3)
  }

  @Test("A client's failure is not retried.")
  func connectivityIsNotRetried() async throws {
    let bench = try Bench(.genres, ScriptedClient(.fail(URLError(.timedOut)), valid))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .connectivity)
    #expect(bench.client.urls.count == 1)
  }

  @Test("A client's failure ends the retries of invalid data.")
  func connectivityEndsRetries() async throws {
    let bench = try Bench(.genres, ScriptedClient(invalid, .fail(URLError(.timedOut)), valid))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .connectivity)
    #expect(bench.client.urls.count == 2)
  }

  @Test(
    "Every kind of invalid data is retried.",
    arguments: [(500, Feed.genres.payload(1)), (200, "no json"), (200, "")])
  func everyKindIsRetried(status: Int, body: String) async throws {
    let bench = try Bench(.genres, ScriptedClient(.reply(status, body), valid))

    #expect(try await bench.handles.load(nil, nil).items == bench.items(1, 2))
    #expect(bench.client.urls.count == 2)
  }

  @Test("Each load has its own attempts.")
  func attemptsPerLoad() async throws {
    let bench = try Bench(.genres, ScriptedClient(last: invalid))

    async let first = feedError { try await bench.handles.load(nil, nil) }
    async let second = feedError { try await bench.handles.load(nil, nil) }

    #expect(await [first?.reason, second?.reason] == [.invalidData, .invalidData])
    #expect(bench.client.urls.count == 6)
  }

  @Test("Attempts request the same URL, one after another.")
  func attemptsInTurn() async throws {
    let bench = try Bench(.genres, ScriptedClient(last: .hold))
    let bad = ScriptedClient.Answer.reply(200, Data("no".utf8))

    async let error = feedError { try await bench.handles.load(nil, nil) }
    for attempt in 0..<3 {
      try await bench.client.waitForHeldRequests(1)
      #expect(bench.client.urls.map(\.absoluteString).count == attempt + 1)
      bench.client.release(attempt, with: bad)
    }

    #expect(await error?.reason == .invalidData)
    #expect(Set(bench.client.urls).count == 1)
  }

  @Test("The URL provider is called once per load, not per attempt.")
  func urlIsAskedOncePerLoad() async throws {
    let asked = Counter()
    let endpoint = Endpoint<Void, String>(
      url: { web("https://feeds.example.org/\(asked.next())") },
      map: { _, _ in throw RemoteFailure(.invalidData) })
    var policy = LoadPolicy(.remoteOnly)
    policy.loading.retries = Loading.Retries(extra: 2, first: .zero)
    let client = ScriptedClient(last: .reply(200, ""))
    let loader = Loader<Void, String, String>(
      endpoint, client: client, cache: nil, key: { "k" }, policy: policy)

    _ = await feedError { try await loader.load() }

    #expect(client.urls == Array(repeating: web("https://feeds.example.org/1"), count: 3))
  }

  @Test("A load cancelled between attempts makes no further attempt.")
  func cancelledBetweenAttempts() async throws {
    let bench = try Bench(.genres, ScriptedClient(last: .hold))

    let load = Task { try await bench.handles.load(nil, nil) }
    try await bench.client.waitForHeldRequests(1)
    load.cancel()
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: .reply(200, Data("no".utf8)))

    await #expect(throws: CancellationError.self) { try await load.value }
    #expect(bench.client.urls.count == 1)
  }

  @Test("A load that succeeds after retries saves once, and only valid data.")
  func savedOnce() async throws {
    let bench = try Bench(.genres, ScriptedClient(invalid, invalid, valid))

    let messages = await bench.messages { try? await bench.handles.load(nil, nil) }

    #expect(messages == [.retrieve, .replace(1)])
    #expect(try await bench.handles.cached(nil) == bench.items(1, 2))
  }

  @Test("A cache that cannot be read is not retried.")
  func retrievalIsNotRetried() async throws {
    let bench = try Bench(.genres)
    bench.engine.failReads(.io("unreadable"))

    let messages = await bench.messages {
      await feedError { try await bench.handles.load(.cacheOnly, nil) }
    }

    #expect(messages == [.retrieve])
  }
}
