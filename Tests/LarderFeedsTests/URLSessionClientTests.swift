import AcceptanceRows
import FeedServer
import Foundation
import LarderFeeds
import LarderTestSupport
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The client handles correct and faulty servers within its limits.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct URLSessionClientTests {
  private let path = FeedServer.genresPath

  @Test("A get is one GET request for exactly its URL.")
  func oneRequest() async throws {
    try await withServer { server in
      let url = server.url.appending(path: "some/path/x y")
        .appending(queryItems: [URLQueryItem(name: "q", value: "a b&c")])

      _ = try await URLSessionClient.patient.get(url)

      let requests = server.requests
      #expect(requests.map(\.method) == ["GET"])
      #expect(requests.first.map { "\($0.path)?\($0.query)" } == "/some/path/x y?q=a%20b%26c")
    }
  }

  @Test("The transport's failure is passed on.")
  func refusedConnection() async throws {
    let url = try await withServer { $0.genresURL }

    let error = await #expect(throws: URLError.self) { try await URLSessionClient.patient.get(url) }

    #expect(error?.code == .cannotConnectToHost)
  }

  @Test(
    "The longest time limits and the largest sizes work like any other.",
    arguments: [
      Duration.seconds(31_536_001), .seconds(1e12), .seconds(Int64.max),
      Duration(attoseconds: .max),
    ])
  func longTimeLimits(limit: Duration) async throws {
    try await withServer { server in
      server.answer(path, with: [.reply(status: 200, body: Data("a".utf8))])
      let client = URLSessionClient(
        maximumResponseBytes: .max, maximumRedirects: .max, requestTimeout: limit,
        resourceTimeout: limit)

      let reply = try await client.get(server.genresURL)

      #expect(reply.status == 200 && reply.body == Data("a".utf8))
    }
  }

  @Test("Body and status arrive unchanged.")
  func unchanged() async throws {
    try await withServer { server in
      let body = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
      server.answer(path, with: [.reply(status: 200, body: body)])

      let reply = try await URLSessionClient.patient.get(server.genresURL)

      #expect(reply.status == 200 && reply.body == body)
    }
  }

  @Test("Every status is a response, with a body or without.", arguments: [true, false])
  func noStatusIsJudged(hasBody: Bool) async throws {
    try await withServer { server in
      let client = URLSessionClient.patient
      for status in [200, 201, 203, 300, 400, 401, 404, 418, 500, 503] {
        let body = Data(hasBody ? "{}".utf8 : "".utf8)
        server.answer(path, with: [.reply(status: status, body: body)])

        let reply = try await client.get(server.genresURL)

        #expect(reply.status == status && reply.body == body)
      }
      // A redirect to nowhere among them, whose body Linux drops.
      for status in [204, 302, 304] {
        server.answer(path, with: [.reply(status: status)])
        #expect(try await client.get(server.genresURL).status == status)
      }
    }
  }

  @Test(
    "A request for credentials is a response like any other.",
    arguments: ["Basic realm=\"x\"", "Basic", "Digest realm=\"x\", nonce=\"1\"", "Bearer", ""])
  func challenge(header: String) async throws {
    try await withServer { server in
      let answer = Answer.reply(
        status: 401, body: Data("no".utf8), headers: ["WWW-Authenticate": header])
      server.answer(path, with: [answer])

      let reply = try await URLSessionClient.patient.get(server.genresURL)

      #expect(reply.status == 401 && reply.body == Data("no".utf8))
    }
  }

  @Test("A cancelled request stops, with the code of a cancellation.")
  func cancelled() async throws {
    try await withServer { server in
      server.answer(path, with: [.drip(milliseconds: 5)])
      let client = URLSessionClient.patient

      let request = Task { try await client.get(server.genresURL) }
      await server.arrived(1, path)
      request.cancel()

      let error = await #expect(throws: URLError.self) { try await request.value }
      #expect(error?.code == .cancelled)
      #expect(error?.errorCode == -999)
      // The connection is closed, so the server stops sending.
      await server.ended(1, path)
    }
  }

  @Test("A cancelled task makes no request.")
  func cancelledBefore() async throws {
    try await withServer { server in
      let client = URLSessionClient.patient
      let request = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await client.get(server.genresURL)
      }

      let error = await #expect(throws: URLError.self) { try await request.value }
      #expect(error?.code == .cancelled)
      _ = try await client.get(server.url)
      #expect(server.count(path) == 0)
    }
  }

  @Test("Requests may be cancelled at any moment.", arguments: [1, 2, 3, 4] as [UInt64])
  func cancelledAnyTime(seed: UInt64) async throws {
    try await withServer { server in
      server.answer(path, with: [.redirect(to: "/api/character?page=1")])
      let client = URLSessionClient.patient
      var random = SplitMix64(seed: seed)
      for _ in 1...100 {
        let delay = Int.random(in: 0...400, using: &random)
        let request = Task { try await client.get(server.genresURL) }
        for _ in 0..<delay { await Task.yield() }
        request.cancel()

        switch await request.result {
        case .success(let reply): #expect(reply.status == 200)
        case .failure(let error): #expect((error as? URLError)?.code == .cancelled)
        }
      }
    }
  }

  @Test(
    "The client keeps no URL cache and no cookies.",
    arguments: [URLSessionConfiguration.ephemeral, .default])
  func nothingIsKept(configuration: URLSessionConfiguration) async throws {
    try await withServer { server in
      let headers = ["Cache-Control": "max-age=3600", "Set-Cookie": "a=b; Path=/"]
      server.answer(
        path, with: [.reply(status: 200, body: Data("1".utf8), headers: headers), .empty])
      let client = URLSessionClient.patient(configuration: configuration)

      let first = try await client.get(server.genresURL)
      let second = try await client.get(server.genresURL)

      #expect(first.body == Data("1".utf8) && second.body == Data())
      #expect(server.requests.count == 2)
      #expect(server.requests.allSatisfy { $0.headers["Cookie"] == nil })
    }
  }

  @Test("A body up to the limit is accepted, and one byte more is not.", arguments: [true, false])
  func sizeLimit(isDeclared: Bool) async throws {
    try await withServer { server in
      let client = URLSessionClient.patient(maximumResponseBytes: 100_000)
      for (count, fits) in [(100_000, true), (100_001, false)] {
        let bytes = Data(repeating: 7, count: count)
        server.answer(
          path, with: [isDeclared ? .reply(status: 200, body: bytes) : .chunked(bytes)])

        do {
          let reply = try await client.get(server.genresURL)
          #expect(fits && reply.body == bytes)
        } catch {
          #expect(!fits && error as? HTTPClientError == .responseTooLarge(limit: 100_000))
        }
      }
    }
  }

  @Test("A body that is declared too large is not awaited.")
  func declaredTooLarge() async throws {
    try await withServer { server in
      let headers = ["Content-Length": "\(1 << 40)"]
      server.answer(path, with: [.reply(status: 200, headers: headers)])

      await #expect(throws: HTTPClientError.responseTooLarge(limit: 16 << 20)) {
        try await URLSessionClient.patient.get(server.genresURL)
      }
    }
  }

  @Test("An endless body is cut off while it arrives.")
  func endlessBody() async throws {
    try await withServer { server in
      server.answer(path, with: [.endless])

      await #expect(throws: HTTPClientError.responseTooLarge(limit: 1 << 20)) {
        try await URLSessionClient.patient(maximumResponseBytes: 1 << 20).get(server.genresURL)
      }
      await server.ended(1, path)
    }
  }

  @Test(
    "A connection that ends before the body does is a failure.",
    arguments: [.cut, .wrongLength] as [Answer])
  func cutBody(answer: Answer) async throws {
    try await withServer { server in
      server.answer(path, with: [answer])

      await #expect(throws: URLError.self) {
        try await URLSessionClient.patient.get(server.genresURL)
      }
    }
  }

  @Test("A server that never responds times out.")
  func silence() async throws {
    try await withServer { server in
      server.answer(path, with: [.silence])
      let client = URLSessionClient(requestTimeout: .milliseconds(200))

      let error = await #expect(throws: URLError.self) { try await client.get(server.genresURL) }
      #expect(error?.code == .timedOut)
    }
  }

  @Test("A body that drips times out when the whole exchange takes too long.")
  func drip() async throws {
    try await withServer { server in
      server.answer(path, with: [.drip(milliseconds: 10)])
      let client = URLSessionClient(resourceTimeout: .milliseconds(300))

      let error = await #expect(throws: URLError.self) { try await client.get(server.genresURL) }
      #expect(error?.code == .timedOut)
      // The time of a very slow machine may be over before its request arrives.
      if server.count(path) > 0 { await server.ended(1, path) }
    }
  }

  @Test("A slow server is awaited.")
  func slow() async throws {
    try await withServer { server in
      server.answer(path, with: [.slow(milliseconds: 50)])
      let client = URLSessionClient.patient

      let reply = try await client.get(server.genresURL)

      #expect(reply.status == 200)
    }
  }

  @Test("A timeout is never rounded down, and never to zero.")
  func timeoutsAreRoundedUp() {
    #expect(wholeSeconds(.milliseconds(1)) == 1)
    #expect(wholeSeconds(.milliseconds(700)) == 1)
    #expect(wholeSeconds(.seconds(30)) == 30)
    #expect(wholeSeconds(.milliseconds(30_001)) == 31)
  }

  @Test("A redirect is followed, a limited number of times.")
  func redirects() async throws {
    try await withServer { server in
      server.answer(path, with: [.redirect(to: "/api/character?page=3"), .redirectLoop])
      let client = URLSessionClient.patient(maximumRedirects: 3)

      let followed = try await client.get(server.genresURL)
      #expect(try followed.body == Payloads.charactersJSON(page: 3))

      await #expect(throws: HTTPClientError.redirectRefused(to: server.genresURL)) {
        try await client.get(server.genresURL)
      }
      #expect(server.count(path) == 1 + 1 + 3)

      await #expect(throws: HTTPClientError.self) {
        try await URLSessionClient.patient(maximumRedirects: 0).get(server.genresURL)
      }
      #expect(server.count(path) == 6)
    }
  }

  @Test(
    "A redirect to a scheme other than HTTP is refused.",
    arguments: ["file:///etc/passwd", "ftp://127.0.0.1/x", "FILE:///etc/passwd"])
  func redirectOffTheWeb(target: String) async throws {
    try await withServer { server in
      server.answer(path, with: [.redirect(to: target)])

      await #expect(throws: HTTPClientError.self) {
        try await URLSessionClient.patient.get(server.genresURL)
      }
      #expect(server.requests.count == 1)
    }
  }

  @Test(
    "A redirect may not lose encryption.",
    arguments: [
      ("https://a/", "https://b/", true), ("https://a/", "http://a/", false),
      ("http://a/", "https://a/", true), ("http://a/", "http://b/", true),
      ("http://a/", "file:///b", false), ("https://a/", "data:,x", false),
    ])
  func redirectRule(source: String, target: String, isAllowed: Bool) {
    #expect(allowsRedirect(from: web(source), to: web(target), location: nil) == isAllowed)
    #expect(allowsRedirect(from: web(source), to: web(target), location: target) == isAllowed)
  }

  @Test("A redirect with an endless body times out.")
  func endlessRedirect() async throws {
    try await withServer { server in
      server.answer(path, with: [.redirect(to: "/", endless: true)])
      let client = URLSessionClient(resourceTimeout: .milliseconds(200))

      let error = await #expect(throws: URLError.self) { try await client.get(server.genresURL) }
      #expect(error?.code == .timedOut)
    }
  }

  @Test("Many requests at once each get their own response.")
  func manyAtOnce() async throws {
    try await withServer { server in
      let client = URLSessionClient.patient
      let base = server.url.appending(path: "api/character")
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for page in 1...30 {
          group.addTask {
            let url = base.appending(queryItems: [URLQueryItem(name: "page", value: "\(page)")])
            return try await client.get(url).body == Payloads.charactersJSON(page: page)
          }
        }
        for try await isRight in group { #expect(isRight) }
      }
    }
  }

  @Test("A client may be released before its request ends.")
  func clientGoesFirst() async throws {
    try await withServer { server in
      server.answer(path, with: [.slow(milliseconds: 20)])

      let request = Task { [client = URLSessionClient.patient] in
        try await client.get(server.genresURL)
      }
      let reply = try await request.value

      #expect(reply.status == 200)
    }
  }
}

/// Only valid combinations of data, response and error are a response.
@Suite(.acceptance, .serialized, .timeLimit(.minutes(30))) struct TransportStateTests {
  struct Case: Sendable, CustomTestStringConvertible {
    enum Response: Sendable { case none, other, http }
    var data: Bool
    var response: Response
    var error: Bool
    var testDescription: String { "data \(data), response \(response), error \(error)" }
    /// The two states that are a reply.
    var isReply: Bool { response == .http && !error }
  }

  static let all = [false, true].flatMap { data in
    [Case.Response.none, .other, .http].flatMap { response in
      [false, true].map { Case(data: data, response: response, error: $0) }
    }
  }

  @Test("Only an HTTP response without an error is a response.", arguments: all)
  func states(state: Case) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [StubProtocol.self]
    let client = URLSessionClient.patient(configuration: configuration)
    let url = StubProtocol.url(for: state)

    do {
      let reply = try await client.get(url)
      #expect(state.isReply)
      #expect(reply.status == 200 && reply.body == Data(state.data ? "data".utf8 : "".utf8))
    } catch {
      #expect(!state.isReply)
      if state.error {
        #expect((error as? URLError)?.code == .networkConnectionLost)
      } else {
        #expect(error as? HTTPClientError == .unexpectedResponse)
      }
    }
  }
}

/// Plays the transport's side of a ``TransportStateTests/Case``, which the URL spells out.
private final class StubProtocol: URLProtocol {
  static func url(for state: TransportStateTests.Case) -> URL {
    web("http://stub.example.org/\(state.data ? "data" : "-")/\(state.response)/\(state.error)")
  }

  override static func canInit(with request: URLRequest) -> Bool { true }
  override static func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}

  override func startLoading() {
    guard let url = request.url else { return }
    let parts = url.pathComponents
    if parts[2] == "http",
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
    {
      client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    } else if parts[2] == "other" {
      let response = URLResponse(
        url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
      client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    }
    if parts[1] == "data" { client?.urlProtocol(self, didLoad: Data("data".utf8)) }
    if parts[3] == "true" {
      client?.urlProtocol(self, didFailWithError: URLError(.networkConnectionLost))
    } else {
      client?.urlProtocolDidFinishLoading(self)
    }
  }
}
