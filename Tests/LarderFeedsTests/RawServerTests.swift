import FeedServer
import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import Testing

/// Servers that break HTTP's own rules end as no connection, within the limits.
@Suite(.serialized, .timeLimit(.minutes(10))) struct RawServerTests {
  /// What a server sends: once, and then again and again.
  struct Attack: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var first = ""
    var more = ""
    var milliseconds = 0
    /// Whether the client's time limit ends the request, and not a limit in bytes.
    var isTimed = false

    var client: URLSessionClient {
      URLSessionClient(
        requestTimeout: .seconds(60), resourceTimeout: .seconds(isTimed ? 1 : 300))
    }
  }

  /// Foundation takes half a minute for as many of them as it accepts.
  static let smallFields = Attack(
    testDescription: "small header fields without end", first: "HTTP/1.1 200 OK\r\n",
    more: String(repeating: "X: a\r\n", count: 10_000), isTimed: true)

  static let floods = [
    Attack(
      testDescription: "header fields without end", first: "HTTP/1.1 200 OK\r\n",
      more: String(repeating: "X-Field: \(String(repeating: "a", count: 1000))\r\n", count: 100)),
    Attack(
      testDescription: "a header field without end", first: "HTTP/1.1 200 OK\r\nX-Field: ",
      more: String(repeating: "a", count: 100_000)),
    Attack(
      testDescription: "a status line without end", first: "HTTP/1.1 200 ",
      more: String(repeating: "a", count: 100_000)),
    Attack(
      testDescription: "status 100 for ever",
      more: String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 1000)),
    Attack(
      testDescription: "status 199 with a field for ever",
      more: String(repeating: "HTTP/1.1 199 What\r\nX: a\r\n\r\n", count: 1000)),
    Attack(testDescription: "no HTTP", more: String(repeating: "no ", count: 10_000)),
  ]

  static let trickles = [
    Attack(
      testDescription: "status 199 again and again", more: "HTTP/1.1 199 What\r\n\r\n",
      milliseconds: 20, isTimed: true),
    Attack(
      testDescription: "status 100 again and again", more: "HTTP/1.1 100 Continue\r\n\r\n",
      milliseconds: 20, isTimed: true),
    Attack(
      testDescription: "a header field again and again", first: "HTTP/1.1 200 OK\r\n",
      more: "X: a\r\n", milliseconds: 20, isTimed: true),
  ]

  private func withRawServer<R>(
    _ attack: Attack, _ body: (RawServer) async throws -> R
  ) async throws -> R {
    let server = try RawServer(
      attack.first, then: attack.more, every: attack.milliseconds)
    let result = try await body(server)
    await server.end()
    return result
  }

  @Test(
    "A response that does not end is no connection.",
    arguments: floods + trickles + (isProof ? [smallFields] : []))
  func attack(attack: Attack) async throws {
    try await withRawServer(attack) { server in
      let parts = try Composition.imageData.open(server.url, attack.client, .inMemory())
      let error = await feedError { try await parts.load(nil) }
      #expect(error?.reason == .connectivity)
      // Those with a time limit would not end without it. The others have limits in bytes, and the
      // system's buffers take some, too.
      #expect(attack.isTimed || server.sentBytes < 16 << 20)
    }
  }

  @Test("Responses with status 1xx before the real one are skipped.")
  func informational() async throws {
    let attack = Attack(
      testDescription: "hints",
      first: """
        HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: b\r\n\r\nabc
        """)
    try await withRawServer(attack) { server in
      let (response, body) = try await URLSessionClient.patient.send(
        HTTPRequest(url: server.url), body: Data())
      #expect(response.status == .ok && body == Data("abc".utf8))
      #expect(HTTPField.Name("X-A").map { response.headerFields[$0] } == "b")
    }
  }

  #if os(Linux)
    /// A gap of Foundation that the documentation of `URLSessionClient` names.
    @Test("A byte that is not UTF-8 in a header field is no connection; UTF-8 is delivered.")
    func latin1() async throws {
      func server(_ name: [UInt8]) throws -> RawServer {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: caf"
        return try RawServer(Data(head.utf8) + Data(name) + Data("\r\n\r\nabc".utf8))
      }
      let latin = try server([0xE9])
      let parts = try Composition.imageData.open(latin.url, URLSessionClient.patient, .inMemory())
      let error = await feedError { try await parts.load(nil) }
      #expect(error?.reason == .connectivity)
      await latin.end()

      let unicode = try server([0xC3, 0xA9])
      let (response, body) = try await URLSessionClient.patient.send(
        HTTPRequest(url: unicode.url), body: Data())
      #expect(response.status == .ok && body == Data("abc".utf8))
      await unicode.end()
    }
  #endif

  @Test("A flood of header fields is not held in memory.")
  func memory() async {
    // In another process, which does nothing else.
    await #expect(processExitsWith: .success) {
      var least = 0
      for attack in Self.floods.reversed() + Self.floods {
        try await RawServerTests().withRawServer(attack) { server in
          _ = await #expect(throws: (any Error).self) {
            _ = try await attack.client.send(HTTPRequest(url: server.url), body: Data())
          }
        }
        // The memory of a first request is not that of its response.
        if least == 0 { least = peakMemory() }
      }
      #expect(peakMemory() - least < 32 << 20)
    }
  }
}
