import FlyingFox
import FlyingSocks
import Foundation
import LarderTestSupport

// The HTTP response for each answer. The server closes the connection when a body ends before its
// declared length, and so cuts it off.

extension FeedServer {
  static func response(
    to request: HTTPRequest, _ answer: Answer, _ book: Watched<Book>
  ) async throws -> HTTPResponse {
    let end = End(of: request.path, in: book)
    switch answer {
    case .payload: return try payload(of: request)
    case .status(let code): return try payload(of: request, status: code)
    case .reply(let status, let body, let headers):
      var fields = HTTPHeaders()
      for (name, value) in headers { fields[HTTPHeader(name)] = value }
      return HTTPResponse(
        statusCode: HTTPStatusCode(status, phrase: ""), headers: fields, body: body)
    case .chunked(let bytes):
      let body = Body(end) { sent in sent == 0 ? [UInt8](bytes) : nil }
      return HTTPResponse(statusCode: .ok, body: HTTPBodySequence(from: body))
    case .brokenJSON:
      let whole = try body(of: request) ?? Data()
      return HTTPResponse(statusCode: .ok, headers: json, body: whole.prefix(whole.count / 2))
    case .empty: return HTTPResponse(statusCode: .ok, headers: json)
    case .cut:
      let whole = try body(of: request) ?? Data()
      return piece(of: whole.prefix(whole.count / 2), end, declared: whole.count)
    case .wrongLength:
      let whole = try body(of: request) ?? Data()
      return piece(of: whole, end, declared: whole.count + 1)
    case .stall, .stallChunked:
      let whole = try body(of: request) ?? Data()
      let count = answer == .stall ? whole.count : nil
      return stall(after: whole.prefix(whole.count / 2), end, declared: count)
    case .silence:
      try await forever()
      return HTTPResponse(statusCode: .ok)
    case .slow(let milliseconds):
      await pause(milliseconds: milliseconds)
      return try payload(of: request)
    case .drip(let milliseconds):
      let bytes = Body(end) { _ in
        await pause(milliseconds: milliseconds)
        return [0x20]
      }
      return HTTPResponse(statusCode: .ok, headers: json, body: HTTPBodySequence(from: bytes))
    case .endless:
      return HTTPResponse(statusCode: .ok, headers: json, body: blanks(end))
    case .redirect(let target, let endless):
      let body = endless ? blanks(end) : HTTPBodySequence()
      return HTTPResponse(statusCode: .found, headers: headers(to: target), body: body)
    case .redirectLoop:
      return HTTPResponse(
        statusCode: .found, headers: headers(to: request.path), body: HTTPBodySequence())
    }
  }

  private static let json: HTTPHeaders = [.contentType: "application/json"]
  private static func headers(to target: String) -> HTTPHeaders { [.location: target] }

  private static func blanks(_ end: End) -> HTTPBodySequence {
    let piece = [UInt8](repeating: 0x20, count: 16 << 10)
    let body = Body(end) { _ in
      // 4 MB a second. Sending as fast as possible could starve the tests' threads, and so even the
      // client's cancellation.
      try await Task.sleep(for: .milliseconds(4))
      return piece
    }
    return HTTPBodySequence(from: body)
  }

  private static func payload(of request: HTTPRequest, status: Int = 200) throws -> HTTPResponse {
    guard let body = try body(of: request) else {
      let nothing = Data(#"{"error":"There is nothing here"}"#.utf8)
      return HTTPResponse(statusCode: .notFound, headers: json, body: nothing)
    }
    var headers: HTTPHeaders =
      request.path.hasPrefix(imagePath) ? [.contentType: "image/png"] : json
    headers[.eTag] = tag(of: body)
    headers[.cacheControl] = "max-age=60"
    if status == 200, request.headers[.ifNoneMatch] == tag(of: body) {
      headers[.contentType] = nil
      return HTTPResponse(statusCode: .notModified, headers: headers)
    }
    return HTTPResponse(
      statusCode: HTTPStatusCode(status, phrase: ""), headers: headers, body: body)
  }

  /// An `ETag`: a hash of the body (FNV-1a).
  private static func tag(of body: Data) -> String {
    let hash = body.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return "\"\(String(hash, radix: 16))\""
  }

  private static func body(of request: HTTPRequest) throws -> Data? {
    switch request.path {
    case genresPath: return try Payloads.genresJSON()
    case charactersPath:
      let page = request.query["page"].flatMap(Int.init) ?? 1
      guard (1...Payloads.characterPages).contains(page) else { return nil }
      return try Payloads.charactersJSON(page: page)
    case feedPath: return try Payloads.feedJSON()
    case searchPath: return try Payloads.mediaJSON(query: request.target.query())
    case imagesPath:
      return try Payloads.imagesJSON(at: "http://\(request.headers[.host] ?? "127.0.0.1")")
    default:
      return (1...Payloads.imageCount).first { imagePath($0) == request.path }
        .flatMap(Payloads.imageBytes)
    }
  }

  /// Sends `bytes` under a declared length of `declared` bytes, then closes the connection.
  private static func piece(of bytes: Data, _ end: End, declared: Int) -> HTTPResponse {
    let body = Body(end) { sent in
      guard sent == 0 else { throw SocketError.disconnected }
      return [UInt8](bytes)
    }
    return HTTPResponse(
      statusCode: .ok, headers: json, body: HTTPBodySequence(from: body, count: declared))
  }

  /// Sends `bytes`, records the stall in the book, and then sends nothing.
  private static func stall(after bytes: Data, _ end: End, declared: Int?) -> HTTPResponse {
    let body = Body(end) { sent in
      guard sent > 0 else { return [UInt8](bytes) }
      end.recordStall()
      try await forever()
      return nil
    }
    let sequence = declared.map { HTTPBodySequence(from: body, count: $0) }
    return HTTPResponse(
      statusCode: .ok, headers: json, body: sequence ?? HTTPBodySequence(from: body))
  }

  private static func forever() async throws {
    let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in stream {}
    withExtendedLifetime(continuation) {}
    try Task.checkCancellation()
  }
}

/// Records the end of a response in the book when it is released.
private final class End: Sendable {
  private let path: String
  private let book: Watched<FeedServer.Book>

  init(of path: String, in book: Watched<FeedServer.Book>) {
    self.path = path
    self.book = book
  }

  func recordStall() { book.change { $0.stalled[path, default: 0] += 1 } }

  deinit { book.change { $0.ended[path, default: 0] += 1 } }
}

/// A body made piece by piece; `next` gets the number of bytes sent before.
private struct Body: AsyncBufferedSequence {
  typealias Element = UInt8
  private let end: End
  private let next: @Sendable (_ sent: Int) async throws -> [UInt8]?

  init(_ end: End, _ next: @escaping @Sendable (_ sent: Int) async throws -> [UInt8]?) {
    self.end = end
    self.next = next
  }

  func makeAsyncIterator() -> Iterator { Iterator(end: end, produce: next) }

  struct Iterator: AsyncBufferedIteratorProtocol {
    fileprivate let end: End
    fileprivate let produce: @Sendable (_ sent: Int) async throws -> [UInt8]?
    private var sent = 0

    fileprivate init(
      end: End, produce: @escaping @Sendable (_ sent: Int) async throws -> [UInt8]?
    ) {
      self.end = end
      self.produce = produce
    }

    mutating func next() async throws -> UInt8? {
      preconditionFailure("bodies are read with nextBuffer")
    }

    mutating func nextBuffer(suggested count: Int) async throws -> [UInt8]? {
      let bytes = try await produce(sent)
      sent += bytes?.count ?? 0
      return bytes
    }
  }
}

/// Waits as a slow server does.
///
/// Tests wait for the bytes that are sent, not for the time to pass.
func pause(milliseconds: Int) async {
  await withCheckedContinuation { continuation in
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) {
      continuation.resume()
    }
  }
}
