import FeedServer
import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

/// What a failure of the server says, so that a program can act on it.
@Suite(.timeLimit(.minutes(10))) struct RemoteFailureTests {
  private func failure(of answer: Answer, _ client: some HTTPClient) async throws -> RemoteFailure?
  {
    try await withServer { server in
      server.answer(FeedServer.genresPath, with: [answer])
      let loader = try GenresLoader.genres(from: server.url, client: client, store: .inMemory())
      let error = await feedError { try await loader.load() }
      guard case .remote(let failure, nil) = error else { return nil }
      return failure
    }
  }

  @Test(
    "A real server's status, header fields and body are kept.", arguments: [401, 404, 429, 500])
  func statuses(status: Int) async throws {
    let answer = Answer.reply(
      status: status, body: Data(#"{"reason":"busy"}"#.utf8),
      headers: ["Retry-After": "120", "X-Request": "7"])
    let failure = try #require(try await failure(of: answer, URLSessionClient.patient))
    #expect(failure.kind == .invalidData && failure.status == status)
    let name = try #require(HTTPField.Name("X-Request"))
    #expect(failure.response?.headerFields[name] == "7")
    #expect(failure.body == Data(#"{"reason":"busy"}"#.utf8))
    #expect(failure.retryAfter == .seconds(120) && failure.underlying == nil)
    // What a reader sees stays; a log says more.
    #expect(failure.description == "The server's answer is not valid.")
    #expect(failure.failureReason == "The server answered with status \(status).")
  }

  @Test("The error of the client, and of whoever decodes the reply, are kept.")
  func underlying() async throws {
    let cut = try #require(try await failure(of: .cut, URLSessionClient.patient))
    #expect(cut.kind == .connectivity && cut.response == nil && cut.status == nil)
    #expect(cut.underlying is URLError && cut.body.isEmpty)
    let large = try #require(
      try await failure(of: .endless, URLSessionClient.patient(maximumResponseBytes: 1 << 20)))
    #expect(large.underlying as? HTTPClientError == .responseTooLarge(limit: 1 << 20))
    let broken = try #require(try await failure(of: .brokenJSON, URLSessionClient.patient))
    #expect(broken.kind == .invalidData && broken.status == 200)
    #expect(broken.underlying is DecodingError && !broken.body.isEmpty)
    #expect(broken.failureReason?.contains("200") == true)
  }

  @Test("Only the beginning of a body is kept.")
  func longBody() {
    let body = Data(repeating: 7, count: 1 << 20)
    let failure = RemoteFailure(.invalidData, response: HTTPResponse(status: .ok), body: body)
    #expect(failure.body == body.prefix(RemoteFailure.bodyLimit))
  }

  @Test(
    "Retry-After is a number of seconds or a date.",
    arguments: [
      ("0", nil, 0), ("17", nil, 17), (" 17 ", nil, 17), ("99999999999999999999", nil, 1 << 31),
      ("-1", nil, nil), ("soon", nil, nil), ("", nil, nil), ("1.5", nil, nil),
      ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT", 30),
      ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT", 30),
      ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 09:49:07 GMT", 0),
      ("Sun, 06 Nov 1994 08:49:37 GMT", nil, 0),
    ] as [(String, String?, Int?)])
  func retryAfter(text: String, date: String?, seconds: Int?) {
    var response = HTTPResponse(status: .serviceUnavailable)
    response.headerFields[.retryAfter] = text
    if let date { response.headerFields[.date] = date }
    let failure = RemoteFailure(.invalidData, response: response)
    #expect(failure.retryAfter == seconds.map { .seconds($0) })
  }

  private struct Busy: HTTPClient {
    let retryAfter: String
    let requests = Watched(0)

    func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
      requests.change { $0 += 1 }
      return (
        HTTPResponse(status: .serviceUnavailable, headerFields: [.retryAfter: retryAfter]), Data()
      )
    }
  }

  private func loader(
    _ client: some HTTPClient, _ store: Store, _ change: (inout LoadPolicy) -> Void
  ) throws -> Loader<Void, String, [String]> {
    var policy = LoadPolicy(.cacheThenRemote)
    change(&policy)
    return Loader(
      .json([String].self, at: { web("https://words.example.org/") }) { $0 }, client: client,
      cache: try store.cache(
        "words", of: [String].self, lifetime: .fresh(for: .seconds(60), thenStaleFor: .unlimited)),
      key: { "all" }, policy: policy)
  }

  @Test("A request is not repeated before the server wants it, and not at all if that is too late.")
  func retries() async throws {
    let timer = HandLoadTimer()
    var options = Store.Options()
    options.loadTimer = timer.schedule
    for (wish, requests) in [("20", 2), ("31", 1)] {
      let client = Busy(retryAfter: wish)
      let store = Store.inMemory(options: options)
      let loader = try loader(client, store) {
        $0.loading.retries = Loading.Retries(
          extra: 1, first: .milliseconds(1), upTo: .seconds(30))
      }
      let error = Task { await feedError { try await loader.load() } }
      if requests == 2 { await timer.fire(.seconds(20)) }
      #expect(await error.value?.reason == .invalidData)
      #expect(client.requests.read { $0 } == requests)
    }
    #expect(timer.started == [.seconds(20)])
  }

  @Test("While the server wants to be left alone, stale values come without a request.")
  func throttle() async throws {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let store = Store.inMemory(options: options)
    let client = Busy(retryAfter: "600")
    let loader = try loader(client, store) {
      $0.loading.staleIfError = .seconds(86_400)
      $0.loading.retryThrottle = .seconds(1)
    }
    try loader.cache?.save(["old"], for: "all")
    clock.advance(by: .seconds(100))
    for _ in 0..<3 {
      let loaded = try await loader.load()
      #expect(loaded.value == ["old"] && loaded.remoteFailure?.status == 503)
      clock.advance(by: .seconds(199))
    }
    #expect(client.requests.read { $0 } == 1)
    clock.advance(by: .seconds(10))
    _ = try await loader.load()
    #expect(client.requests.read { $0 } == 2)
  }
}
