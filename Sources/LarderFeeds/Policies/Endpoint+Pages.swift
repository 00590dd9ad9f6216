public import Foundation
public import HTTPTypes

/// A page of a feed, as the server sent it.
public struct Page<Payload: Sendable>: Sendable {
  /// The decoded body.
  public let payload: Payload
  /// The URL that it was requested from.
  public let url: URL
  /// The response without its body.
  public let response: HTTPResponse

  /// The target of a link in the response's `Link` header (RFC 8288).
  ///
  /// - Parameter relation: The relation of the link, such as `next`.
  /// - Returns: The absolute URL of the first link with the relation; nil if there is none.
  public func link(_ relation: String) -> URL? {
    Link.list(response.headerFields[.link] ?? "")
      .first { $0.relations.contains(relation.lowercased()) }
      .flatMap { URL(string: $0.target, relativeTo: url)?.absoluteURL }
  }
}

extension HTTPField.Name {
  // A valid name, so it is never nil.
  fileprivate static let link = HTTPField.Name("Link") ?? .location
}

extension Endpoint {
  /// Makes an endpoint that loads the pages of a feed, and joins their items into one value.
  ///
  /// ```swift
  /// // Each page names the next one in its Link header.
  /// .pages(of: RemoteSongs.self, upTo: 10, at: { first($0) }, more: { [$0.link("next")] }) {
  ///   $0.payload.songs
  /// }
  /// // The first page tells how many there are; four are requested at once.
  /// .pages(
  ///   of: RemoteSongs.self, upTo: 50, atOnce: 4, at: { page(1, of: $0) },
  ///   more: { $0.payload.page == 1 ? (2...$0.payload.pages).map { page($0) } : [] }
  /// ) { $0.payload.songs }
  /// ```
  ///
  /// Every page must have status 200 and valid JSON. The policy's retries apply to each request. If
  /// a page fails, so does the load, and nothing is saved. The value is saved once, at the end.
  ///
  /// - Parameters:
  ///   - payload: The type of a page's payload, decoded with Foundation's defaults.
  ///   - limit: The maximum number of pages, at least 1; further ones are not requested.
  ///   - atOnce: The maximum number of requests at once, at least 1. 1 by default.
  ///   - url: Returns the absolute URL of the first page for an input.
  ///   - more: Returns the URLs of further pages that a page names; nil counts as none. It is
  ///     called for the pages in their order. A URL is requested once only.
  ///   - items: Returns the items of a page. The value has the items of all pages, in their order.
  /// - Returns: The endpoint.
  public static func pages<Payload: Decodable & Sendable & SendableMetatype, Item>(
    of payload: Payload.Type, upTo limit: Int, atOnce: Int = 1,
    at url: @escaping @Sendable (Input) -> URL,
    more: @escaping @Sendable (Page<Payload>) -> [URL?],
    _ items: @escaping @Sendable (Page<Payload>) throws -> [Item]
  ) -> Endpoint where Value == [Item] {
    precondition(limit >= 1 && atOnce >= 1, "a feed has at least one page, and one at once")
    return Endpoint { input, sender in
      var pages = Pages<Payload, Item>(limit: limit, first: url(input))
      try await withThrowingTaskGroup(of: (Int, PageReply<Payload, Item>).self) { group in
        for _ in 0..<atOnce {
          guard let (index, url) = pages.start() else { break }
          group.addTask { (index, try await sender.page(at: url, items)) }
        }
        while let (index, reply) = try await group.next() {
          pages.add(reply, at: index, more)
          while pages.running < atOnce, let (index, url) = pages.start() {
            group.addTask { (index, try await sender.page(at: url, items)) }
          }
        }
      }
      return Mapped(value: pages.items, exchanges: pages.exchanges)
    }
  }
}

private struct PageReply<Payload: Sendable, Item: Sendable>: Sendable {
  let page: Page<Payload>
  let items: [Item]
  let exchange: Exchanged
}

/// The pages of one load: those that are known, and those that have been loaded.
private struct Pages<Payload: Sendable, Item: Sendable> {
  private let limit: Int
  private var urls: [URL]
  private var replies: [Int: PageReply<Payload, Item>] = [:]
  private var started = 0
  /// The number of pages whose links were followed.
  private var read = 0

  init(limit: Int, first: URL) { (self.limit, urls) = (limit, [first]) }

  var running: Int { started - replies.count }
  var items: [Item] { (0..<replies.count).flatMap { replies[$0]?.items ?? [] } }
  var exchanges: [Exchanged] { (0..<replies.count).compactMap { replies[$0]?.exchange } }

  /// The next page to request, and its place; nil if none is known.
  mutating func start() -> (Int, URL)? {
    guard started < urls.count else { return nil }
    defer { started += 1 }
    return (started, urls[started])
  }

  mutating func add(
    _ reply: PageReply<Payload, Item>, at index: Int, _ more: (Page<Payload>) -> [URL?]
  ) {
    replies[index] = reply
    // In the order of the pages, so that the value does not depend on which response came first.
    while let reply = replies[read] {
      read += 1
      for case let url? in more(reply.page) where urls.count < limit && !urls.contains(url) {
        urls.append(url)
      }
    }
  }
}

extension RequestSender {
  fileprivate func page<Payload: Decodable & Sendable & SendableMetatype, Item: Sendable>(
    at url: URL, _ items: (Page<Payload>) throws -> [Item]
  ) async throws -> PageReply<Payload, Item> {
    let request = try make { try HTTPRequest(get: url) }
    return try await send(request, body: Data()) { response, data in
      let payload = try JSONDecoder().decode(Payload.self, from: accepted(response, data))
      let page = Page(payload: payload, url: url, response: response)
      return PageReply(
        page: page, items: try items(page),
        exchange: Exchanged(request: request, response: response))
    }
  }
}
