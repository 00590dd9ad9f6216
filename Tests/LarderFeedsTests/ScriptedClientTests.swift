import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// The client for users' tests.
@Suite(.timeLimit(.minutes(10))) struct ScriptedClientTests {
  private func request(_ path: String) -> HTTPRequest {
    HTTPRequest(url: web("https://words.example.org/\(path)"))
  }

  @Test("Requests are answered in the script's order, and recorded with their bodies.")
  func order() async throws {
    let client = ScriptedHTTPClient([.reply(200, "a"), .fail(URLError(.timedOut))])
    let (response, body) = try await client.send(request("1"), body: Data("x".utf8))
    #expect(response.status == .ok && body == Data("a".utf8))
    await #expect(throws: URLError(.timedOut)) {
      _ = try await client.send(request("2"), body: Data())
    }
    #expect(client.requests == [request("1"), request("2")])
    #expect(client.bodies == [Data("x".utf8), Data()] && client.unexpectedRequests.isEmpty)
  }

  @Test("A request after the end of the script is not expected.")
  func unexpectedRequest() async throws {
    let client = ScriptedHTTPClient([])
    await #expect(throws: URLError(.notConnectedToInternet)) {
      _ = try await client.send(request("1"), body: Data())
    }
    #expect(client.unexpectedRequests == [request("1")])
  }

  @Test("A held request is answered when it is released, cancelled or not.")
  func held() async throws {
    let client = ScriptedHTTPClient([.hold], then: .reply(204))
    let (first, second) = (request("1"), request("2"))
    let held = Task { try await client.send(first, body: Data()).0.status }
    try await client.waitForHeldRequests(1)
    // Others are answered meanwhile.
    #expect(try await client.send(second, body: Data()).0.status == .noContent)
    held.cancel()
    try await client.waitForCancellation(of: 0)
    #expect(client.cancelledRequests == [0])
    client.release(0, with: .reply(404))
    #expect(try await held.value == .notFound)
    // It is no longer held.
    client.release(0, with: .reply(500))
    try await client.waitForHeldRequests(0)
  }

  @Test("A wait that is cancelled throws.")
  func cancelledWait() async throws {
    let client = ScriptedHTTPClient([])
    let wait = Task { try await client.waitForRequests(1) }
    wait.cancel()
    await #expect(throws: CancellationError.self) { try await wait.value }
  }

  @Test("A loaded value for a preview has what it is made with, and otherwise that of a new one.")
  func loaded() {
    let new = Loaded(LoadedEntry(value: 7))
    #expect(new.value == 7 && new.origin == .loaded && new.isSaved && !new.isStale)
    #expect(!new.isRefreshing && !new.isRevalidated && new.savedAt == nil && new.age == .zero)
    #expect(new.leftOut == 0 && new.remoteFailure == nil && new.saveFailure == nil)
    let start = ManualClock.start
    let old = Loaded(
      LoadedEntry(
        value: 7, savedAt: start, age: .seconds(9), origin: .disk, isStale: true,
        isRefreshing: true, saveFailure: .diskFull, loadFailure: RemoteFailure(.invalidData)),
      leftOut: 2)
    #expect(old.origin != .loaded && old.savedAt == start && old.age == .seconds(9) && old.isStale)
    #expect(old.isRefreshing && !old.isRevalidated && !old.isSaved && old.leftOut == 2)
    guard case .diskFull? = old.saveFailure else { return unexpected(old.saveFailure) }
    #expect(old.remoteFailure?.kind == .invalidData)
    #expect(Loaded(LoadedEntry(value: 7, origin: .disk)).isRevalidated)
  }
}
