import FlyingFox
import FlyingSocks
package import Foundation
import LarderTestSupport

/// An HTTP server on loopback that serves all feeds, and fails on request.
///
/// ```swift
/// let server = try await FeedServer()
/// server.answer(FeedServer.genresPath, with: [.status(500), .payload])  // the last one stays
/// await server.arrived(1, FeedServer.genresPath)
/// await server.stop()
/// ```
package final class FeedServer: Sendable {
  /// A request as it arrived.
  package struct Request: Sendable, Hashable {
    package var method: String
    package var path: String
    package var query: String
    package var headers: [String: String]
    package var body: Data
  }

  /// The requests so far, and the answers to the next ones.
  struct Book: Sendable {
    var plans: [String: [Answer]] = [:]
    var requests: [Request] = []
    /// The number of bodies per path that were sent completely or cut off.
    var ended: [String: Int] = [:]
    /// The number of bodies per path that have stalled after their first half.
    var stalled: [String: Int] = [:]
  }

  package static let genresPath = "/api/v2/genres"
  package static let charactersPath = "/api/character"
  package static let feedPath = "/v1/feed"
  package static let searchPath = "/search"
  package static let imagesPath = "/v1/images"

  /// The path whose answers apply to all images without answers of their own.
  package static let imagePath = "/images"

  /// The path of an image's bytes, numbered from 1 to ``Payloads/imageCount``.
  package static func imagePath(_ number: Int) -> String { "\(imagePath)/\(number).png" }

  /// `http://127.0.0.1:PORT`.
  package let url: URL
  private let book: Watched<Book>
  private let server: HTTPServer
  private let running: Task<Void, any Error>

  /// Starts serving.
  ///
  /// Port 0 takes any free port. `onRequest` is called with each request as it arrives.
  package init(
    port: UInt16 = 0, onRequest: @escaping @Sendable (Request) -> Void = { _ in }
  ) async throws {
    let book = Watched(Book())
    let server = HTTPServer(
      address: try sockaddr_in.inet(ip4: "127.0.0.1", port: port), timeout: 24 * 3600,
      logger: .disabled,
      handler: ClosureHTTPHandler { try await Self.respond(to: $0, by: book, onRequest) })
    let running = Task(executorPreference: ServerThread()) { try await server.run() }
    try await server.waitUntilListening(timeout: 600)
    guard case .ip4(_, let port) = await server.listeningAddress,
      let url = URL(string: "http://127.0.0.1:\(port)")
    else {
      running.cancel()
      throw CocoaError(.fileReadUnknown)
    }
    self.book = book
    self.server = server
    self.running = running
    self.url = url
  }

  /// Stops serving, and closes all connections, even those that wait for an answer.
  package func stop() async {
    await server.stop()
    _ = await running.result
  }

  /// Answers the next requests for `path` with one of `answers` each; the last one stays in effect.
  package func answer(_ path: String, with answers: [Answer]) {
    book.change { $0.plans[path] = answers }
  }

  /// The requests that have arrived so far, in order.
  package var requests: [Request] { book.read { $0.requests } }

  /// The number of requests for `path` that have arrived.
  package func count(_ path: String) -> Int { requests.count { $0.path == path } }

  /// Waits until `count` requests for `path` have arrived in total.
  package func arrived(_ count: Int, _ path: String) async {
    await book.wait { state in state.requests.count { $0.path == path } >= count }
  }

  /// Waits until the bodies for `count` requests for `path` were sent completely or cut off.
  package func ended(_ count: Int, _ path: String) async {
    await book.wait { $0.ended[path, default: 0] >= count }
  }

  /// Waits until the bodies for `count` requests for `path` have stalled.
  package func stalled(_ count: Int, _ path: String) async {
    await book.wait { $0.stalled[path, default: 0] >= count }
  }

  private static func respond(
    to request: HTTPRequest, by book: Watched<Book>, _ onRequest: @Sendable (Request) -> Void
  ) async throws -> HTTPResponse {
    let arrived = Request(
      method: request.method.rawValue, path: request.path, query: request.target.query(),
      headers: Dictionary(
        request.headers.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: { a, _ in a }),
      body: try await request.bodyData)
    let answer = book.change { state in
      state.requests.append(arrived)
      let paths = [request.path, request.path.hasPrefix("\(imagePath)/") ? imagePath : ""]
      guard let path = paths.first(where: { state.plans[$0] != nil }),
        let plan = state.plans[path], let next = plan.first
      else { return Answer.payload }
      if plan.count > 1 { state.plans[path] = Array(plan.dropFirst()) }
      return next
    }
    onRequest(arrived)
    return try await response(to: request, answer, book)
  }
}
