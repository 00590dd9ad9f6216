import ExampleSupport
import FlyingFox
import FlyingSocks
import Foundation
import Larder
import LarderTesting

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// A cache of responses in a FlyingFox server, in front of the server's own handler. A response is
// kept for its `max-age`. A successful POST ends all responses of its section.

struct CachedResponse: Codable, Sendable {
  var body: Data
  var cacheControl: String
  var contentType: String?
}

struct ResponseCache: HTTPHandler {
  let store: Store
  let responses: Cache<String, CachedResponse>
  let handler: any HTTPHandler

  init(in store: Store, before handler: any HTTPHandler) throws {
    (self.store, self.handler) = (store, handler)
    responses = try store.cache("responses", of: CachedResponse.self, byteBudget: 50_000_000)
  }

  func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard request.method == .GET else {
      let response = try await handler.handleRequest(request)
      if (200..<300).contains(response.statusCode.code) {
        try await store.run { try store.invalidate(tag: section(of: request.path)) }
      }
      return response
    }
    let key = request.target.rawValue
    if let entry = try await store.run({ try responses.entry(for: key) }) {
      return answer(entry.value, entry.validator, age: entry.age, to: request)
    }
    return try await load(request, key)
  }

  /// Calls the handler, and saves its response if it has a `max-age`.
  ///
  /// The handler must give it only to responses that are the same for all clients. A response from
  /// before a POST that is saved after it stays until its `max-age` ends.
  private func load(_ request: HTTPRequest, _ key: String) async throws -> HTTPResponse {
    let response = try await handler.handleRequest(request)
    guard response.statusCode == .ok,
      let cacheControl = response.headers[.cacheControl],
      let maxAge = cacheControl.firstMatch(of: /max-age=([0-9]{1,9})/).flatMap({ Double($0.1) })
    else { return response }
    let new = CachedResponse(
      body: try await response.bodyData, cacheControl: cacheControl,
      contentType: response.headers[.contentType])
    let validator = response.headers[.eTag].map { Validator($0) }
    try await store.run {
      try responses.save(
        new, for: key, lifetime: .seconds(maxAge), validator: validator,
        tags: [section(of: request.path)])
    }
    return answer(new, validator, age: .zero, to: request)
  }

  private func answer(
    _ response: CachedResponse, _ validator: Validator?, age: Duration, to request: HTTPRequest
  ) -> HTTPResponse {
    var headers: HTTPHeaders = [
      .cacheControl: response.cacheControl, HTTPHeader("Age"): "\(age.components.seconds)",
    ]
    headers[.contentType] = response.contentType
    headers[.eTag] = validator?.text
    if let etag = validator?.text, request.headers[.ifNoneMatch] == etag {
      return HTTPResponse(statusCode: .notModified, headers: headers)
    }
    return HTTPResponse(statusCode: .ok, headers: headers, body: response.body)
  }

  /// The first part of a path: `/teas` for `/teas/green`.
  private func section(of path: String) -> String { "/\(path.split(separator: "/").first ?? "")" }
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
  handler: try ResponseCache(in: store, before: shop))
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
print("A POST ends the responses of its section:")
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
