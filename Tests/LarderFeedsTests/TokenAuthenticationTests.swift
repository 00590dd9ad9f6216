import Foundation
import HTTPTypes
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

/// Requests with a token, which is replaced when a server rejects it.
@Suite(.timeLimit(.minutes(10))) struct TokenAuthenticationTests {
  private struct Refused: Error {}

  /// A server that accepts one token, and issues tokens.
  private final class Issuer: Sendable {
    struct State: Sendable {
      var valid = "t1"
      var rejected: [String?] = []
      var isRefusing = false
      var isHeld = false
    }

    let state = Watched(State())

    /// The number of tokens that were asked for.
    var count: Int { state.read { $0.rejected.count } }

    @Sendable func issue(_ rejected: String?) async throws -> String {
      state.change { $0.rejected.append(rejected) }
      await state.wait { !$0.isHeld }
      if state.read({ $0.isRefusing }) { throw Refused() }
      return state.read { $0.valid }
    }

    /// Answers requests: status 200 with the valid token, 401 with another or none.
    @Sendable func answer(
      _ request: HTTPRequest, _ body: Data, _ client: any HTTPClient
    ) -> (HTTPResponse, Data) {
      let isValid = request.headerFields[.authorization] == "Bearer \(state.read { $0.valid })"
      return (HTTPResponse(status: isValid ? .ok : .unauthorized), body)
    }
  }

  private let issuer = Issuer()
  private let request = HTTPRequest(url: web("https://words.example.org/a"))

  private func client(_ token: String? = nil) -> some HTTPClient {
    let authentication = TokenAuthentication(token, refresh: issuer.issue)
    return ScriptedClient().intercepted(by: issuer.answer)
      .intercepted(by: authentication.intercept)
  }

  @Test("The first request asks for a token, and later ones use it.")
  func firstToken() async throws {
    let client = client()
    for _ in 0..<3 {
      let (response, body) = try await client.send(request, body: Data("b".utf8))
      #expect(response.status == .ok && body == Data("b".utf8))
    }
    #expect(issuer.state.read { $0.rejected } == [nil])
  }

  @Test("A rejected token is replaced once, and the request is sent again with its body.")
  func rejected() async throws {
    let client = client("t0")
    let (response, body) = try await client.send(request, body: Data("b".utf8))
    #expect(response.status == .ok && body == Data("b".utf8))
    issuer.state.change { $0.valid = "t2" }
    #expect(try await client.send(request, body: Data()).0.status == .ok)
    #expect(issuer.state.read { $0.rejected } == ["t0", "t1"])
  }

  @Test("If the new token is rejected, too, its response is returned.")
  func rejectedTwice() async throws {
    let authentication = TokenAuthentication("t0") { [issuer] rejected in
      try await issuer.issue(rejected) + "x"
    }
    let client = ScriptedClient().intercepted(by: issuer.answer)
      .intercepted(by: authentication.intercept)
    #expect(try await client.send(request, body: Data()).0.status == .unauthorized)
    #expect(issuer.count == 1)
  }

  @Test("A thousand requests whose token is rejected share one new token.")
  func shared() async throws {
    issuer.state.change { $0.isHeld = true }
    let client = client("t0")
    let request = request
    try await withThrowingTaskGroup { group in
      for _ in 0..<1000 {
        group.addTask { try await client.send(request, body: Data()).0.status }
      }
      await issuer.state.wait { $0.rejected.count == 1 }
      issuer.state.change { $0.isHeld = false }
      for try await status in group { #expect(status == .ok) }
    }
    #expect(issuer.count == 1)
  }

  @Test("If no new token is issued, the request fails with that error; the next one asks again.")
  func refused() async throws {
    issuer.state.change { $0.isRefusing = true }
    let client = client("t0")
    await #expect(throws: Refused.self) { _ = try await client.send(request, body: Data()) }
    issuer.state.change { $0.isRefusing = false }
    #expect(try await client.send(request, body: Data()).0.status == .ok)
    #expect(issuer.count == 2)
  }

  @Test("A request that is cancelled leaves at once; the new token is kept for the next one.")
  func cancelled() async throws {
    issuer.state.change { $0.isHeld = true }
    let client = client()
    let request = request
    let send = Task { try await client.send(request, body: Data()) }
    await issuer.state.wait { $0.rejected.count == 1 }
    send.cancel()
    await #expect(throws: CancellationError.self) { _ = try await send.value }
    issuer.state.change { $0.isHeld = false }
    #expect(try await client.send(request, body: Data()).0.status == .ok)
    #expect(issuer.count == 1)
  }

  @Test("A feed whose loads are rejected signs in once, and is loaded.")
  func feed() async throws {
    let issuer = issuer
    let authentication = TokenAuthentication("t0", refresh: issuer.issue)
    let client = ScriptedClient(last: .reply(200, "[]"))
      .intercepted { request, body, client in
        let (response, _) = issuer.answer(request, body, client)
        return response.status == .ok
          ? try await client.send(request, body: body) : (response, Data())
      }
      .intercepted(by: authentication.intercept)
    let loader = Loader<String, String, [String]>(
      .json([String].self, at: { web("https://words.example.org/\($0)") }, { $0 }),
      client: client, cache: nil, key: { $0 }, policy: LoadPolicy(.remoteOnly))
    try await withThrowingTaskGroup { group in
      for key in 0..<100 { group.addTask { try await loader.load("\(key)") } }
      for try await loaded in group { #expect(loaded.value == []) }
    }
    #expect(issuer.count == 1)
  }
}
