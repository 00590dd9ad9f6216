import ExampleSupport
import FlyingFox
import FlyingSocks
import Foundation
import Larder
import LarderHTTP
import LarderTesting

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// A cache of responses in a FlyingFox server, in front of the server's own handler. A response is
// kept for its `max-age`, and a POST to its URL ends it. Adapter.swift has what is FlyingFox's.

struct CachedHandler: HTTPHandler {
  let responses: ResponseCache
  let handler: any HTTPHandler

  func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
    let (response, body) = try await responses.respond(
      to: request.standard, body: try await request.bodyData
    ) { changed, _ in try await handler.handleRequest(request.with(changed)).standard }
    return HTTPResponse(response, body)
  }
}

/// The server's own handler: pages with prices, which a POST raises by 1.
actor Shop: HTTPHandler {
  private var prices = ["/teas/green": 3, "/coffees/mocha": 5]
  private(set) var pages = 0

  func handleRequest(_ request: HTTPRequest) -> HTTPResponse {
    guard let price = prices[request.path] else { return HTTPResponse(statusCode: .notFound) }
    if request.method == .POST {
      prices[request.path] = price + 1
      return HTTPResponse(statusCode: .noContent)
    }
    pages += 1
    return HTTPResponse(
      statusCode: .ok, headers: [.eTag: "\"price-\(price)\"", .cacheControl: "max-age=60"],
      body: Data("\(request.path) costs \(price)".utf8))
  }
}

let directory = try temporaryDirectory()
let clock = ManualClock()
var options = Store.Options()
options.clock = clock
let store = try Store(at: directory, options: options)
let shop = Shop()
let server = HTTPServer(
  address: try .inet(ip4: "127.0.0.1", port: 0), logger: .disabled,
  handler: CachedHandler(responses: try ResponseCache(in: store), handler: shop))
let running = Task { try await server.run() }
try await server.waitUntilListening()
guard case .ip4(_, let port)? = await server.listeningAddress else { fatalError("no port") }

/// Sends a request, and checks its status and how many pages the shop has made by then.
func send(
  _ method: String, _ path: String, etag: String? = nil, status: Int, pages: Int
) async throws {
  guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { throw URLError(.badURL) }
  var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
  request.httpMethod = method
  request.setValue(etag, forHTTPHeaderField: "If-None-Match")
  let (body, response) = try await URLSession.shared.data(for: request)
  let (code, made) = ((response as? HTTPURLResponse)?.statusCode ?? 0, await shop.pages)
  let text = String(decoding: body, as: UTF8.self)
  print("\(method) \(path): \(code) \"\(text)\", pages made: \(made)")
  expect(code == status && made == pages, "status \(status), \(pages) pages made")
}

try await send("GET", "/teas/green", status: 200, pages: 1)
try await send("GET", "/coffees/mocha", status: 200, pages: 2)
print("30 seconds later, from the cache:")
clock.advance(by: .seconds(30))
try await send("GET", "/teas/green", status: 200, pages: 2)
try await send("GET", "/teas/green", etag: "\"price-3\"", status: 304, pages: 2)
print("A POST ends the responses of its URL:")
try await send("POST", "/teas/green", status: 204, pages: 2)
try await send("GET", "/teas/green", etag: "\"price-3\"", status: 200, pages: 3)
try await send("GET", "/coffees/mocha", status: 200, pages: 3)
print("30 seconds later, the max-age of the coffee has passed:")
clock.advance(by: .seconds(30))
try await send("GET", "/teas/green", etag: "\"price-4\"", status: 304, pages: 3)
try await send("GET", "/coffees/mocha", status: 200, pages: 4)

await server.stop()
_ = await running.result
try store.close()
try FileManager.default.removeItem(at: directory)
