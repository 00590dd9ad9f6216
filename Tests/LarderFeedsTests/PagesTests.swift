import Foundation
import HTTPTypes
import Larder
import LarderTesting
import Testing

@testable import LarderFeeds

/// Feeds of several pages.
@Suite(.timeLimit(.minutes(10))) struct PagesTests {
  private struct Numbers: Codable, Sendable {
    var items: [Int]
    var pages: Int?
    var next: String?
  }

  private typealias Feed = Loader<String, String, [Int]>

  private func loader(
    _ client: ScriptedClient, upTo limit: Int = 10, atOnce: Int = 1, _ policy: LoadPolicy? = nil,
    more: @escaping @Sendable (Page<Numbers>) -> [URL?]
  ) throws -> Feed {
    var options = Store.Options()
    // An entry of ten seconds must not expire while the machine is busy.
    options.clock = ManualClock()
    return Feed(
      .pages(
        of: Numbers.self, upTo: limit, atOnce: atOnce,
        at: { web("https://numbers.example.org/\($0)?page=1") }, more: more, { $0.payload.items }),
      client: client, cache: try Store.inMemory(options: options).cache("numbers", of: [Int].self),
      key: { $0 },
      policy: policy ?? LoadPolicy(.cacheThenRemote))
  }

  /// A page with the number 10 times its own.
  private func page(_ number: Int, of pages: Int? = nil, link: String? = nil) throws
    -> ScriptedClient.Answer
  {
    let body = try JSONEncoder().encode(Numbers(items: [10 * number], pages: pages))
    let fields = link.map { "Link: \($0)" } ?? ""
    return .reply(200, body, headerFields: HTTPFields(lines: fields))
  }

  @Test("The pages that follow each other by their links are one value, saved once.")
  func links() async throws {
    let client = ScriptedClient(
      try page(1, link: "<?page=2>; rel=next"),
      try page(2, link: "<https://numbers.example.org/p?page=3>; rel=\"prev next\""),
      try page(3, link: "<?page=2>; rel=prev"))
    let loader = try loader(client) { [$0.link("next")] }
    let loaded = try await loader.load("p")
    #expect(loaded.value == [10, 20, 30] && loaded.isSaved)
    #expect(client.urls.map { $0.query() ?? "" } == ["page=1", "page=2", "page=3"])
    #expect(try loader.cache?.value(for: "p") == [10, 20, 30])
    #expect(loader.cache?.store.statistics.caches["numbers"]?.saves == 1)
  }

  @Test("A field of a page can name the next one.")
  func field() async throws {
    let next = "https://numbers.example.org/p?cursor=x"
    let body = try JSONEncoder().encode(Numbers(items: [1], next: next))
    let client = ScriptedClient(.reply(200, body), try page(2))
    let loader = try loader(client) { [$0.payload.next.flatMap(URL.init(string:))] }
    #expect(try await loader.load("p").value == [1, 20])
    #expect(client.urls.last == web(next))
  }

  @Test("No more pages are requested than the limit, and none twice.", arguments: [1, 2, 5])
  func limit(limit: Int) async throws {
    let client = ScriptedClient(last: try page(1, link: "<?page=2>; rel=next"))
    let loader = try loader(client, upTo: limit) { page in
      // Each page names the same two pages.
      [web("https://numbers.example.org/p?page=1"), page.link("next")]
    }
    #expect(try await loader.load("p").value.count == min(limit, 2))
    #expect(client.urls.count == min(limit, 2))
  }

  @Test("So many pages are requested at once, and joined in their order.")
  func concurrency() async throws {
    let client = ScriptedClient(try page(1, of: 6), last: .hold)
    let loader = try loader(client, atOnce: 3) { page in
      page.payload.pages.map { (2...$0).map { web("https://numbers.example.org/p?page=\($0)") } }
        ?? []
    }
    async let loaded = loader.load("p")
    try await client.waitForHeldRequests(3)
    #expect(client.urls.count == 4)
    // Requests made at once arrive in any order.
    func release(_ index: Int) throws {
      let number = try #require(Int(client.urls[index].absoluteString.suffix(1)))
      client.release(index, with: try page(number))
    }
    for index in [3, 1, 2] { try release(index) }
    try await client.waitForHeldRequests(2)
    for index in [5, 4] { try release(index) }
    #expect(try await loaded.value == [10, 20, 30, 40, 50, 60])
  }

  @Test("If a page fails, so does the load: nothing is saved, and other requests are cancelled.")
  func failure() async throws {
    let client = ScriptedClient(try page(1, of: 3), last: .hold)
    let loader = try loader(client, atOnce: 2) { page in
      page.payload.pages.map { (2...$0).map { web("https://numbers.example.org/p?page=\($0)") } }
        ?? []
    }
    async let error = feedError { try await loader.load("p") }
    try await client.waitForHeldRequests(2)
    client.release(1, with: .reply(404))
    try await client.waitForCancellation(of: 2)
    client.release(2, with: try page(3))
    #expect(await error?.reason == .invalidData)
    #expect(try loader.cache?.value(for: "p") == nil)
  }

  @Test("Each page is retried by itself.")
  func retries() async throws {
    var policy = LoadPolicy(.remoteOnly)
    policy.loading.retries = Loading.Retries(extra: 1, first: .zero)
    let client = ScriptedClient(
      .reply(500), try page(1, link: "<?page=2>; rel=next"), .reply(500), try page(2))
    let loader = try loader(client, policy) { [$0.link("next")] }
    #expect(try await loader.load("p").value == [10, 20])
  }

  @Test("With HTTP caching, the strictest page decides; there is no condition.")
  func caching() async throws {
    var policy = LoadPolicy(.cacheThenRemote)
    policy.httpCaching = true
    let first = HTTPFields(
      lines: "ETag: \"1\"\nCache-Control: max-age=60\nLink: <?page=2>; rel=next")
    let second = HTTPFields(lines: "Cache-Control: max-age=10")
    let client = ScriptedClient(
      .reply(200, #"{"items":[1]}"#, headerFields: first),
      .reply(200, #"{"items":[2]}"#, headerFields: second))
    let loader = try loader(client, policy) { [$0.link("next")] }
    #expect(try await loader.load("p").isSaved)
    let entry = try loader.cache?.entry(for: "p")
    #expect(entry?.lifetime?.freshSeconds == 10 && entry?.validator == nil)
  }

  @Test("With HTTP caching, windows of pages count from the earliest end of freshness.")
  func windows() async throws {
    var policy = LoadPolicy(.cacheThenRemote)
    policy.httpCaching = true
    let directives = "Cache-Control: max-age=60, stale-if-error=50"
    let client = ScriptedClient(
      .reply(
        200, #"{"items":[1]}"#,
        headerFields: HTTPFields(lines: "\(directives)\nAge: 100\nLink: <?page=2>; rel=next")),
      .reply(200, #"{"items":[2]}"#, headerFields: HTTPFields(lines: "\(directives)\nAge: 105")))
    let loader = try loader(client, policy) { [$0.link("next")] }
    #expect(try await loader.load("p").isSaved)
    guard case .stale(let entry)? = try loader.cache?.lookup(for: "p") else {
      Issue.record("the value is not stale")
      return
    }
    #expect(entry.validator?.text == "\nmax-age=-45, stale-if-error=50")
  }

  struct LinkRow: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let links: [Link]
    init(_ field: String, _ links: [Link]) { (testDescription, self.links) = (field, links) }
  }

  @Test(
    "The links of a Link header (RFC 8288) are found.",
    arguments: [
      LinkRow("", []),
      LinkRow("<a>; rel=next", [Link(target: "a", relations: ["next"])]),
      LinkRow("<a>;REL=\"Next prev\"", [Link(target: "a", relations: ["next", "prev"])]),
      LinkRow(
        "<a,b;c>; rel=\"next\" , <d>;rel=last",
        [Link(target: "a,b;c", relations: ["next"]), Link(target: "d", relations: ["last"])]),
      LinkRow(
        "<a>; title=\"x, <y>; rel=no\"; rel=next", [Link(target: "a", relations: ["next"])]),
      LinkRow("<a>; title=\"\\\"\"; rel=next", [Link(target: "a", relations: ["next"])]),
      LinkRow("<a>; rel=next; rel=prev", [Link(target: "a", relations: ["next"])]),
      LinkRow("<a>; flag; rel = next", [Link(target: "a", relations: ["next"])]),
      LinkRow("<a>", [Link(target: "a")]),
      LinkRow("a; rel=next", []),
      LinkRow("<a; rel=next", []),
      LinkRow("<a>; rel=\"next", [Link(target: "a", relations: ["next"])]),
      LinkRow("<>; rel=next, , <b>", [Link(target: "", relations: ["next"]), Link(target: "b")]),
    ])
  func linkHeader(row: LinkRow) { #expect(Link.list(row.testDescription) == row.links) }
}
