import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Pages that are loaded one at a time, as a reader scrolls.
@Suite(.timeLimit(.minutes(10))) struct LoadedPagesTests {
  struct List: Codable, Sendable, Equatable {
    var items: [String]
    var next: URL?
  }

  /// A server with three pages, each with a tag of its own.
  final class Server: HTTPClient {
    struct State: Sendable {
      var requests: [(page: String, condition: String?)] = []
      var failing: String?
      var version = 1
    }

    let state = Watched(State())

    func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
      let page = request.path ?? ""
      let condition = request.headerFields[.ifNoneMatch]
      let (isFailing, version) = state.change { state in
        state.requests.append((page, condition))
        return (state.failing == page, state.version)
      }
      if isFailing { throw URLError(.networkConnectionLost) }
      let tag = "\"\(page) \(version)\""
      let fields: HTTPFields = [.eTag: tag, .cacheControl: "max-age=60"]
      if condition == tag {
        return (HTTPResponse(status: .notModified, headerFields: fields), Data())
      }
      let number = Int(page.dropFirst()) ?? 0
      let next = number < 3 ? web("https://list.example.org/\(number + 1)") : nil
      let list = List(items: ["\(number) of \(version)"], next: next)
      return (HTTPResponse(status: .ok, headerFields: fields), try JSONEncoder().encode(list))
    }

    /// The pages that were requested since the last call, with a star if conditionally.
    func requests() -> [String] {
      state.change { state in
        defer { state.requests = [] }
        return state.requests.map { $0.page + ($0.condition == nil ? "" : "*") }
      }
    }
  }

  private let first = web("https://list.example.org/1")

  private func loader(
    _ server: Server, _ clock: ManualClock
  ) throws -> Loader<URL, String, List> {
    var options = Store.Options()
    options.clock = clock
    var policy = LoadPolicy(.cacheThenRemote)
    policy.httpCaching = true
    policy.loading.staleIfError = .seconds(86_400)
    return Loader(
      .json(List.self, at: { $0 }) { $0 }, client: server,
      cache: try Store.inMemory(options: options).cache(
        "pages", of: List.self, lifetime: .fresh(for: .seconds(60), thenStaleFor: .unlimited)),
      key: \.absoluteString, policy: policy)
  }

  private func items(_ pages: LoadedPages<URL, String, List>, _ count: Int = .max) async throws
    -> [String]
  {
    var items: [String] = []
    for try await page in pages {
      items += page.value.items
      if items.count == count { break }
    }
    return items
  }

  @Test("A page is requested when it is asked for, and each is confirmed by itself.")
  func oneAtATime() async throws {
    let (server, clock) = (Server(), ManualClock())
    let loader = try loader(server, clock)
    let pages = loader.pages(from: first, upTo: 10) { $0.next }
    #expect(try await items(pages, 2) == ["1 of 1", "2 of 1"])
    #expect(server.requests() == ["/1", "/2"])
    clock.advance(by: .seconds(40))
    #expect(try await items(pages) == ["1 of 1", "2 of 1", "3 of 1"])
    #expect(server.requests() == ["/3"])
    clock.advance(by: .seconds(40))
    #expect(try await items(pages) == ["1 of 1", "2 of 1", "3 of 1"])
    #expect(server.requests() == ["/1*", "/2*"], "the third page is fresh")
    server.state.change { $0.version = 2 }
    clock.advance(by: .seconds(100))
    #expect(try await items(pages) == ["1 of 2", "2 of 2", "3 of 2"])
    #expect(server.requests() == ["/1*", "/2*", "/3*"])
    #expect(try await items(loader.pages(from: first, upTo: 2) { $0.next }).count == 2)
  }

  @Test("A page that fails is tried again by the next call; a saved one takes its place.")
  func failure() async throws {
    let (server, clock) = (Server(), ManualClock())
    let loader = try loader(server, clock)
    var pages = loader.pages(from: first, upTo: 10) { $0.next }.makeAsyncIterator()
    server.state.change { $0.failing = "/2" }
    #expect(try await pages.next()?.value.items == ["1 of 1"])
    let error = await #expect(throws: FeedError.self) { _ = try await pages.next() }
    guard case .remote(let failure, nil)? = error else { return unexpected(error) }
    #expect(failure.underlying as? URLError == URLError(.networkConnectionLost))
    server.state.change { $0.failing = nil }
    #expect(try await pages.next()?.value.items == ["2 of 1"])
    #expect(try await pages.next()?.value.items == ["3 of 1"])
    #expect(try await pages.next() == nil)
    #expect(try await pages.next() == nil)
    server.state.change { $0.failing = "/2" }
    clock.advance(by: .seconds(100))
    let again = loader.pages(from: first, upTo: 10) { $0.next }
    var stale: [Bool] = []
    for try await page in again { stale.append(page.isStale) }
    #expect(stale == [false, true, false])
  }

  @Test("Pages that name each other in a circle end at the limit.")
  func circle() async throws {
    let loader = try loader(Server(), ManualClock())
    let first = first
    let pages = loader.pages(from: first, upTo: 5) { _ in first }
    #expect(try await items(pages).count == 5)
  }

  @Test("A payload is decoded by the feed's decoder.")
  func decoder() async throws {
    struct Remote: Decodable { var savedAt: Date }
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let client = ScriptedHTTPClient([.reply(200, #"{"saved_at":"2026-01-01T00:00:00Z"}"#)])
    let loader = Loader<Void, String, Date>(
      .json(Remote.self, at: { web("https://dates.example.org/") }, decoder: decoder) {
        $0.savedAt
      },
      client: client, cache: nil, key: { "" }, policy: LoadPolicy(.remoteOnly))
    #expect(try await loader.load().value == ManualClock.start)
  }
}
