import FeedServer
import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Requests with their own method, header fields and body, and interceptors.
@Suite(.timeLimit(.minutes(10))) struct RequestTests {
  @Test("A real server receives the method, the header fields and the body of a request.")
  func realServer() async throws {
    try await withServer { server in
      server.answer(
        "/words",
        with: [.reply(status: 200, body: Data("[]".utf8), headers: ["ETag": "\"1\"", "X-A": "b"])])
      var request = HTTPRequest(method: .put, url: server.url.appending(path: "words"))
      request.headerFields = HTTPFields(lines: "X-Token: 7\nX-Words: a\nX-Words: b")
      let (response, body) = try await URLSessionClient.patient.send(
        request, body: Data("text".utf8))
      #expect(response.status == .ok && body == Data("[]".utf8))
      #expect(response.headerFields[.eTag] == "\"1\"")
      #expect(HTTPField.Name("x-a").map { response.headerFields[$0] } == "b")
      let received = try #require(server.requests.first)
      #expect(received.method == "PUT" && received.body == Data("text".utf8))
      #expect(received.headers["X-Token"] == "7" && received.headers["X-Words"] == "a, b")
    }
  }

  @Test("A redirect to another server carries no credentials; one to the same server does.")
  func redirectedCredentials() async throws {
    try await withServer { server in
      try await withServer { other in
        let there = other.url.appending(path: "words").absoluteString
        server.answer("/words", with: [.redirect(to: "/again"), .redirect(to: there)])
        server.answer("/again", with: [.empty])
        other.answer("/words", with: [.empty])
        var request = HTTPRequest(url: server.url.appending(path: "words"))
        request.headerFields = HTTPFields(
          lines: "Authorization: Bearer 1\nX-Key: 2\nCookie: 3\nAccept: text/plain")
        for _ in 0..<2 {
          _ = try await URLSessionClient.patient.send(request, body: Data())
        }
        let same = try #require(server.requests.first { $0.path == "/again" }).headers
        #expect(same["Authorization"] == "Bearer 1" && same["X-Key"] == "2")
        let foreign = try #require(other.requests.first).headers
        #expect(foreign["Authorization"] == nil && foreign["X-Key"] == nil)
        #expect(foreign["Cookie"] == nil && foreign["Accept"] == "text/plain")
      }
    }
  }

  @Test("Interceptors are called from the outside in, and see every attempt.")
  func interceptors() async throws {
    let log = Watched([String]())
    let client = ScriptedClient(.reply(500), .reply(200, "[]"))
      .intercepted { request, body, client in
        log.change { $0.append("inner") }
        return try await client.send(request, body: body)
      }
      .intercepted { request, body, client in
        log.change { $0.append("outer") }
        var request = request
        request.headerFields[.userAgent] = "words"
        return try await client.send(request, body: body)
      }
    var policy = LoadPolicy(.remoteOnly)
    policy.loading.retries = Loading.Retries(extra: 1, first: .zero)
    let loader = Loader<Void, String, [String]>(
      .json([String].self, at: { web("https://words.example.org") }, { $0 }), client: client,
      cache: nil, key: { "all" }, policy: policy)
    _ = try await loader.load()
    #expect(log.read { $0 } == ["outer", "inner", "outer", "inner"])
  }

  @Test(
    "A URL that cannot be requested is no connection; no request is made.",
    arguments: ["", "relative/path", "file:///etc/passwd", "mailto:a@example.org", "//host/x"])
  func unsupportedURL(text: String) async throws {
    let url = URL(string: text) ?? URL(filePath: "/")
    let client = ScriptedClient()
    let images = try ImageDataLoader.imageData(client: client, store: .inMemory())
    let error = await feedError { try await images.load(url) }
    #expect(error?.reason == .connectivity && client.requests.isEmpty)
  }

  @Test("A closure that throws instead of making a request is no connection.")
  func throwingRequest() async throws {
    let client = ScriptedClient()
    let endpoint = Endpoint<Void, String>(
      request: { throw CocoaError(.featureUnsupported) }, map: { _, _ in "" })
    let loader = Loader<Void, String, String>(
      endpoint, client: client, cache: nil, key: { "all" }, policy: LoadPolicy(.remoteOnly))
    #expect(await feedError { try await loader.load() }?.reason == .connectivity)
    #expect(client.requests.isEmpty)
  }

  @Test("The endpoint's closure sees the status and the header fields.")
  func mapping() async throws {
    let client = ScriptedClient(
      .reply(201, "x", headerFields: HTTPFields(lines: "Location: /words/7")))
    let endpoint = Endpoint<String, String>(
      request: { HTTPRequest(method: .post, url: web("https://words.example.org/\($0)")) },
      body: { Data($0.utf8) },
      map: { response, body in
        "\(response.status.code) \(response.headerFields[.location] ?? "") \(body.count)"
      })
    let loader = Loader<String, String, String>(
      endpoint, client: client, cache: nil, key: { $0 }, policy: LoadPolicy(.remoteOnly))
    #expect(try await loader.load("abc").value == "201 /words/7 1")
    #expect(client.bodies == [Data("abc".utf8)] && client.requests[0].method == .post)
  }
}
