import Foundation
import HTTPTypes
import Larder
import LarderHTTP
import LarderTestSupport
import LarderTesting
import Testing

/// The rules of a shared cache of HTTP responses, each with its source.
@Suite(.timeLimit(.minutes(10))) struct ResponseCacheTests {
  /// A cache in front of a handler that a test scripts.
  final class Site: Sendable {
    let clock = ManualClock()
    let store: Store
    let cache: ResponseCache
    /// The requests that the handler got.
    let requests = Watched<[HTTPRequest]>([])
    /// The response to the next requests, and how long it takes.
    private let reply = Watched(
      (status: 200, fields: HTTPFields(), error: nil as URLError?, time: Duration.zero))

    init(_ set: (inout ResponseCache.Options) -> Void = { _ in }) throws {
      var options = Store.Options()
      options.clock = clock
      store = Store.inMemory(options: options)
      var settings = ResponseCache.Options()
      set(&settings)
      cache = try ResponseCache(in: store, options: settings)
    }

    func replies(
      _ status: Int = 200, _ fields: [String: String] = [:], error: URLError? = nil,
      after time: Duration = .zero
    ) {
      reply.change { $0 = (status, Site.fields(fields), error, time) }
    }

    func replies(_ status: Int, with fields: HTTPFields) {
      reply.change { $0 = (status, fields, nil, .zero) }
    }

    static func fields(_ fields: [String: String]) -> HTTPFields {
      var result = HTTPFields()
      for (name, value) in fields {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name)") }
        result.append(HTTPField(name: name, value: value))
      }
      return result
    }

    /// Each body is another one.
    func send(
      _ method: HTTPRequest.Method = .get, _ path: String = "/a", _ fields: [String: String] = [:],
      body: Data = Data()
    ) async throws -> (response: HTTPResponse, body: String) {
      let request = HTTPRequest(
        method: method, scheme: "http", authority: "shop.example", path: path,
        headerFields: Self.fields(fields))
      let (response, data) = try await cache.respond(to: request, body: body) { request, _ in
        let number = self.requests.change { requests in
          requests.append(request)
          return requests.count
        }
        let reply = self.reply.read { $0 }
        if let error = reply.error { throw error }
        self.clock.advance(by: reply.time)
        let response = HTTPResponse(
          status: HTTPResponse.Status(code: reply.status), headerFields: reply.fields)
        return (response, reply.status == 304 ? Data() : Data("\(number)".utf8))
      }
      return (response, String(decoding: data, as: UTF8.self))
    }

    /// How often the handler was called for two requests.
    func callsForTwo(
      after seconds: Int = 0, _ first: [String: String] = [:], _ second: [String: String] = [:]
    ) async throws -> Int {
      _ = try await send(.get, "/a", first)
      clock.advance(by: .seconds(seconds))
      _ = try await send(.get, "/a", second)
      return requests.read { $0.count }
    }

    var calls: Int { requests.read { $0.count } }
  }

  static let day = "Thu, 01 Jan 2026 00:00:00 GMT"
  private static let dayBefore = "Wed, 31 Dec 2025 23:59:59 GMT"
  static let later = "Thu, 01 Jan 2026 00:01:00 GMT"

  @Test(
    "A request says what it accepts (RFC 9111, section 5.2.1).",
    arguments: [
      ("", 59, 1), ("", 60, 2), ("max-age=30", 30, 1), ("max-age=30", 31, 2), ("max-age=0", 0, 1),
      ("max-age=0", 1, 2), ("no-cache", 0, 2), ("min-fresh=20", 40, 1), ("min-fresh=20", 41, 2),
      ("max-stale=10", 70, 1), ("max-stale=10", 71, 2), ("max-stale", 500, 1),
      ("only-if-cached", 10, 1), ("only-if-cached", 61, 1),
    ])
  func requests(directive: String, seconds: Int, calls: Int) async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60", "ETag": "\"a\""])
    let request = directive.isEmpty ? [:] : ["Cache-Control": directive]
    #expect(try await site.callsForTwo(after: seconds, [:], request) == calls)
  }

  @Test("Pragma counts only without Cache-Control (section 5.4).")
  func pragma() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60"])
    #expect(try await site.callsForTwo([:], ["Pragma": "no-cache"]) == 2)
    _ = try await site.send(.get, "/a", ["Pragma": "no-cache", "Cache-Control": "max-age=9"])
    #expect(site.calls == 2)
  }

  @Test("Only-if-cached is answered with 504 if there is nothing to use (section 5.2.1.7).")
  func onlyIfCached() async throws {
    let site = try Site()
    let (response, body) = try await site.send(.get, "/a", ["Cache-Control": "only-if-cached"])
    #expect(response.status == .gatewayTimeout && body.isEmpty && site.calls == 0)
    #expect(response.headerFields[.cacheStatus] == "Larder; fwd=uri-miss")
  }

  @Test(
    "Some responses are never used when they are stale (section 4.2.4).",
    arguments: [
      ("max-age=60", 1), ("max-age=60, must-revalidate", 2), ("max-age=60, proxy-revalidate", 2),
      ("s-maxage=60", 2),
    ])
  func maxStale(control: String, calls: Int) async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": control, "ETag": "\"a\""])
    #expect(try await site.callsForTwo(after: 61, [:], ["Cache-Control": "max-stale"]) == calls)
  }

  @Test("A response of the cache has its age; each one says what the cache did (5.1, RFC 9211).")
  func age() async throws {
    let site = try Site()
    site.replies(
      200, ["Cache-Control": "max-age=60", "Age": "10", "Connection": "X, close", "X": "1"])
    let first = try await site.send().response
    #expect(
      first.headerFields[.cacheStatus] == "Larder; fwd=uri-miss; fwd-status=200; stored")
    site.clock.advance(by: .seconds(7.9))
    let (second, body) = try await site.send()
    #expect(second.headerFields[.age] == "17" && body == "1")
    #expect(second.headerFields[.cacheStatus] == "Larder; hit; ttl=43")
    #expect(second.headerFields[.connection] == nil && second.headerFields[.named("X")] == nil)
    let posted = try await site.send(.post, "/b").response
    #expect(posted.headerFields[.cacheStatus] == "Larder; fwd=method; fwd-status=200")
    let ranged = try await site.send(.get, "/a", ["Range": "bytes=0-1"]).response
    #expect(ranged.headerFields[.cacheStatus] == "Larder; fwd=bypass; fwd-status=200")
    let quiet = try Site { $0.statusName = nil }
    #expect(try await quiet.send().response.headerFields[.cacheStatus] == nil)
  }

  @Test("A stale response is confirmed with its validators, and updated (sections 4.3.1 to 4.3.4).")
  func validation() async throws {
    let site = try Site()
    let modified = Self.day
    site.replies(
      200,
      [
        "Cache-Control": "max-age=60", "ETag": "\"a\"", "Last-Modified": modified, "X-Page": "old",
        "Content-Type": "text/plain",
      ])
    _ = try await site.send(.get, "/a", ["If-None-Match": "\"other\""])
    #expect(site.requests.read { $0[0].headerFields[.ifNoneMatch] } == nil)
    site.clock.advance(by: .seconds(100))
    site.replies(
      304, ["Cache-Control": "max-age=30", "ETag": "\"a\"", "X-Page": "new", "Content-Type": "no"])
    let (response, body) = try await site.send(.get, "/a", ["If-None-Match": "\"other\""])
    let asked = site.requests.read { $0[1].headerFields }
    #expect(asked[.ifNoneMatch] == "\"a\"" && asked[.ifModifiedSince] == modified)
    #expect(response.status == .ok && body == "1")
    #expect(response.headerFields[.named("X-Page")] == "new")
    #expect(response.headerFields[.contentType] == "text/plain")
    #expect(
      response.headerFields[.cacheStatus] == "Larder; fwd=stale; fwd-status=304; stored")
    site.clock.advance(by: .seconds(29))
    #expect(try await site.send().body == "1" && site.calls == 2)
    // Another tag is another response: the handler is asked once more.
    site.clock.advance(by: .seconds(10))
    site.replies(304, ["ETag": "\"b\""])
    _ = try await site.send()
    #expect(site.calls == 4)
    #expect(site.requests.read { $0[3].headerFields[.ifNoneMatch] } == nil)
  }

  @Test(
    "The client's conditions are answered by the cache (RFC 9110, section 13.1).",
    arguments: [
      (["If-None-Match": "\"a\""], 304), (["If-None-Match": "W/\"a\""], 304),
      (["If-None-Match": "\"b\", W/\"a\""], 304), (["If-None-Match": "*"], 304),
      (["If-None-Match": "\"b\""], 200), (["If-None-Match": "\"b,\\\"a\\\"\""], 200),
      (["If-Modified-Since": day], 304), (["If-Modified-Since": later], 304),
      (["If-Modified-Since": dayBefore], 200),
      (["If-Modified-Since": "yesterday"], 200),
      (["If-None-Match": "\"b\"", "If-Modified-Since": day], 200),
    ] as [([String: String], Int)])
  func conditions(fields: [String: String], status: Int) async throws {
    let site = try Site()
    site.replies(
      200, ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Last-Modified": Self.day, "X": "1"])
    for _ in 0..<2 {
      // From the handler, and from the cache.
      let (response, body) = try await site.send(.get, "/a", fields)
      #expect(response.status.code == status && body == (status == 304 ? "" : "1"))
      #expect(response.headerFields[.eTag] == "\"a\"")
      #expect((response.headerFields[.named("X")] == nil) == (status == 304))
    }
    #expect(site.calls == 1)
  }

  @Test("Without a date of modification, the response's own date counts (section 4.3.2).")
  func datedConditions() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60"])
    _ = try await site.send()
    site.clock.advance(by: .seconds(30))
    for (since, status) in [(Self.day, 304), (Self.later, 304), (Self.dayBefore, 200)] {
      let response = try await site.send(.get, "/a", ["If-Modified-Since": since]).response
      #expect(response.status.code == status && response.headerFields[.date] == Self.day)
    }
    #expect(site.calls == 1)
  }

  @Test("A response has a date, and the time of its making is a part of its age (4.2.3).")
  func slow() async throws {
    let site = try Site()
    site.replies(
      200, ["Cache-Control": "max-age=60", "Age": "5", "ETag": "1"], after: .seconds(10))
    #expect(try await site.send().response.headerFields[.date] == "Thu, 01 Jan 2026 00:00:10 GMT")
    let second = try await site.send().response.headerFields
    #expect(second[.age] == "15" && second[.date] == "Thu, 01 Jan 2026 00:00:10 GMT")
    // A confirmation has a date and an age of its own.
    site.clock.advance(by: .seconds(45))
    site.replies(304, ["ETag": "1"], after: .seconds(2))
    #expect(try await site.send().response.headerFields[.date] == "Thu, 01 Jan 2026 00:00:57 GMT")
    let fourth = try await site.send().response.headerFields
    #expect(fourth[.age] == "2" && fourth[.date] == "Thu, 01 Jan 2026 00:00:57 GMT")
    #expect(site.calls == 2)
  }

  @Test(
    "A HEAD request shows that a kept response is out of date (section 4.3.5).",
    arguments: [
      (200, ["ETag": "\"a\"", "Content-Length": "1"], true), (200, [:], true),
      (200, ["ETag": "\"b\""], false), (200, ["Content-Length": "2"], false),
      (200, ["Last-Modified": day], false), (404, ["ETag": "\"b\""], true),
    ] as [(Int, [String: String], Bool)])
  func overtakenByHead(status: Int, fields: [String: String], isKept: Bool) async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60", "ETag": "\"a\""])
    _ = try await site.send()
    site.replies(status, fields)
    _ = try await site.send(.head, "/a", ["Cache-Control": "no-cache"])
    _ = try await site.send()
    #expect(site.calls == (isKept ? 2 : 3))
  }

  @Test("HEAD is answered from GET, and brings nothing itself (RFC 9110, section 9.3.2).")
  func head() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60", "Content-Length": "1"])
    _ = try await site.send(.head)
    #expect(site.calls == 1)
    _ = try await site.send()
    let (response, body) = try await site.send(.head)
    #expect(response.headerFields[.contentLength] == "1" && body.isEmpty && site.calls == 2)
  }

  @Test("Each variant is kept for itself (section 4.1).")
  func variants() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60", "Vary": "Accept-Language, ACCEPT"])
    func get(_ language: String, _ accept: String? = nil) async throws -> String {
      var fields = ["Accept-Language": language]
      fields["Accept"] = accept
      return try await site.send(.get, "/a", fields).body
    }
    #expect(try await get("de") == "1")
    #expect(try await get("fr") == "2")
    #expect(try await get("de") == "1")
    #expect(try await get("fr", "text/html") == "3")
    #expect(try await get(" fr ") == "2")
    #expect(try await get("fr,accept:") == "4", "a value that looks like another field")
    #expect(try await get("fr", "text/html") == "3" && site.calls == 4)
    // A response that depends on more begins a new list.
    site.replies(200, ["Cache-Control": "max-age=60", "Vary": "Accept, Accept-Language, Cookie"])
    #expect(try await get("it") == "5")
    #expect(try await get("it") == "6")
    #expect(try await get("it") == "6")
    #expect(try await get("de") == "7")
    // All variants are forgotten together.
    site.replies(204)
    _ = try await site.send(.put)
    site.replies(200, ["Cache-Control": "max-age=60", "Vary": "Accept"])
    #expect(try await get("it") == "9")
  }

  @Test("What a request changes is forgotten (section 4.4).", arguments: [true, false])
  func invalidation(succeeds: Bool) async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60"])
    for path in ["/a", "/b", "/c", "/d?x=1"] { _ = try await site.send(.get, path) }
    site.replies(
      succeeds ? 201 : 409, ["Location": "/b", "Content-Location": "http://shop.example/d?x=1"])
    _ = try await site.send(.post, "/a", body: Data("x".utf8))
    site.replies(200, ["Cache-Control": "max-age=60"])
    let before = site.calls
    for path in ["/a", "/b", "/c", "/d?x=1"] { _ = try await site.send(.get, path) }
    #expect(site.calls - before == (succeeds ? 3 : 0))
    // Another server's URL is its own affair, and OPTIONS changes nothing.
    site.replies(201, ["Location": "http://other.example/c"])
    _ = try await site.send(.post, "/x")
    _ = try await site.send(.options, "/c")
    _ = try await site.send(.get, "/c")
    #expect(site.calls - before == (succeeds ? 5 : 2))
    try site.cache.removeResponse(
      to: HTTPRequest(method: .get, scheme: "http", authority: "SHOP.example", path: "/c"))
    _ = try await site.send(.get, "/c")
    #expect(site.calls - before == (succeeds ? 6 : 3))
  }

  @Test("A response that a POST has overtaken is not kept.")
  func overtaken() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60"])
    let (begun, mayEnd) = (Watched(false), Watched(false))
    let request = HTTPRequest(method: .get, scheme: "http", authority: "shop.example", path: "/a")
    let cache = site.cache
    let slow = Task {
      try await cache.respond(to: request) { _, _ in
        begun.change { $0 = true }
        await mayEnd.wait { $0 }
        return (
          HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"]), Data("old".utf8)
        )
      }
    }
    await begun.wait { $0 }
    _ = try await site.send(.post)
    mayEnd.change { $0 = true }
    #expect(try await slow.value.1 == Data("old".utf8))
    #expect(try await site.send().body == "2")
    #expect(try await site.send().body == "2")
  }

  @Test("Stale responses come while the handler makes another, and when it fails (RFC 5861).")
  func staleWindows() async throws {
    let site = try Site()
    site.replies(
      200, ["Cache-Control": "max-age=60, stale-while-revalidate=30, stale-if-error=600"])
    #expect(try await site.send().body == "1")
    site.clock.advance(by: .seconds(70))
    let (stale, body) = try await site.send()
    #expect(body == "1" && stale.headerFields[.cacheStatus] == "Larder; hit; ttl=-10")
    await site.requests.wait { $0.count == 2 }
    while try await site.send().body != "2" { await Task.yield() }
    site.clock.advance(by: .seconds(400))
    for error in [nil, URLError(.timedOut)] {
      site.replies(503, error: error)
      let (response, body) = try await site.send()
      #expect(response.status == .ok && body == "2")
      #expect(response.headerFields[.cacheStatus] == "Larder; hit; ttl=-340")
    }
    site.replies(404)
    #expect(try await site.send().response.status == .notFound)
    site.clock.advance(by: .seconds(300))
    site.replies(503)
    #expect(try await site.send().response.status == .serviceUnavailable)
    site.replies(error: URLError(.timedOut))
    await #expect(throws: URLError(.timedOut)) { try await site.send() }
  }

  @Test("Of many requests one calls the handler; what is not kept is for each alone.")
  func stampede() async throws {
    for isShared in [true, false] {
      let site = try Site()
      let cache = site.cache
      let (calls, mayEnd) = (Watched(0), Watched(false))
      let request = HTTPRequest(method: .get, scheme: "http", authority: "shop.example", path: "/a")
      let bodies = try await withThrowingTaskGroup(of: String.self) { group in
        for client in 0..<20 {
          group.addTask {
            let (_, body) = try await cache.respond(to: request) { _, _ in
              calls.change { $0 += 1 }
              await mayEnd.wait { $0 }
              let control = isShared ? "max-age=60" : "private"
              return (
                HTTPResponse(status: .ok, headerFields: [.cacheControl: control]),
                Data("\(client)".utf8)
              )
            }
            return String(decoding: body, as: UTF8.self)
          }
        }
        await calls.wait { $0 == 1 }
        while site.store.statistics.caches["responses"]?.loads.joins != 19 { await Task.yield() }
        mayEnd.change { $0 = true }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(bodies).count == (isShared ? 1 : 20))
      #expect(calls.read { $0 } == (isShared ? 1 : 20))
    }
  }

  @Test(
    "After a response that is not kept, requests do not wait for each other, but after a login.",
    arguments: [false, true])
  func notKept(hasLogin: Bool) async throws {
    let site = try Site()
    let (cache, calls, mayEnd) = (site.cache, Watched(0), Watched(false))
    var first = HTTPRequest(method: .get, scheme: "http", authority: "shop.example", path: "/a")
    let others = first
    if hasLogin { first.headerFields[.authorization] = "Basic YTpi" }
    let kept = HTTPResponse(
      status: .ok, headerFields: [.cacheControl: hasLogin ? "max-age=60" : "private"])
    _ = try await cache.respond(to: first) { _, _ in (kept, Data()) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<10 {
        group.addTask {
          _ = try await cache.respond(to: others) { _, _ in
            calls.change { $0 += 1 }
            await mayEnd.wait { $0 }
            return (kept, Data())
          }
        }
      }
      await calls.wait { $0 == (hasLogin ? 1 : 10) }
      func joins() -> Int { site.store.statistics.caches["responses"]?.loads.joins ?? 0 }
      while hasLogin, joins() != 9, !Task.isCancelled { await Task.yield() }
      mayEnd.change { $0 = true }
      try await group.waitForAll()
    }
    #expect(calls.read { $0 } == (hasLogin ? 1 : 10))
  }

  @Test("Hostile requests are answered by the handler, and find nobody's response.")
  func hostile() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60", "Vary": "X"])
    for path in ["/a\nx:1", "/" + String(repeating: "x", count: 9000), "/\u{E4}"] {
      for number in [1, 2] {
        let before = site.calls
        _ = try await site.send(.get, path)
        #expect(site.calls == before + 1, "request \(number) of \(path.prefix(9))")
      }
    }
    let before = site.calls
    _ = try await site.send(.get, "/a", ["X": String(repeating: "x", count: 70_000)])
    _ = try await site.send(.get, "/a", ["X": String(repeating: "x", count: 70_000)])
    #expect(site.calls == before + 2)
    let large = try Site { $0.maximumBodyBytes = 0 }
    large.replies(200, ["Cache-Control": "max-age=60"])
    #expect(try await large.callsForTwo() == 2)
  }

  @Test("After a reopening the responses are there, with their ages and variants.")
  func reopening() async throws {
    let directory = TemporaryDirectory.place.appending(path: "larder-responses-\(UUID())")
    defer {
      do { try FileManager.default.removeItem(at: directory) } catch { Issue.record(error) }
    }
    var options = Store.Options()
    let clock = ManualClock()
    options.clock = clock
    let calls = Watched(0)
    for (language, made) in [("de", 1), ("de", 1), ("fr", 2), ("de", 2)] {
      let store = try Store(at: directory, options: options)
      let request = HTTPRequest(
        method: .get, scheme: "http", authority: "shop.example", path: "/a",
        headerFields: [.acceptLanguage: language])
      let (response, body) = try await ResponseCache(in: store).respond(to: request) { _, _ in
        let number = calls.change { calls in
          calls += 1
          return calls
        }
        let fields: HTTPFields = [.cacheControl: "max-age=60", .vary: "Accept-Language"]
        return (HTTPResponse(status: .ok, headerFields: fields), Data("\(number)".utf8))
      }
      #expect(calls.read { $0 } == made)
      #expect(String(decoding: body, as: UTF8.self) == (language == "de" ? "1" : "2"))
      let seconds = Int(clock.now().timeIntervalSince(ManualClock.start))
      if language == "de" {
        #expect(response.headerFields[.age] == (seconds == 0 ? nil : "\(seconds)"))
      }
      clock.advance(by: .seconds(10))
      try store.close()
    }
  }

  @Test("A cache of responses that is dropped answers no request, and fails none.")
  func dropped() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60"])
    for _ in 0..<2 { #expect(try await site.send().body == "1") }
    #expect(try site.store.drop(cache: "responses"))
    for number in 2...3 {
      let (response, body) = try await site.send()
      #expect(response.status == .ok && body == "\(number)")
    }
  }

  @Test(
    "No request gets the response of another URL or variant while entries are evicted and removed.")
  func eviction() async throws {
    var options = Store.Options()
    let clock = ManualClock()
    options.clock = clock
    let store = Store.inMemory(options: options)
    // Room for some of the responses and lists of variants.
    let cache = try ResponseCache(in: store, byteBudget: 6000)
    var random = SplitMix64(seed: 7)
    let calls = Watched(0)
    let requests = 800
    for _ in 0..<requests {
      let path = "/\(Int.random(in: 0..<8, using: &random))"
      let language = ["de", "en", "fr"][Int.random(in: 0..<3, using: &random)]
      let request = HTTPRequest(
        method: .get, scheme: "http", authority: "shop.example", path: path,
        headerFields: [.acceptLanguage: language])
      switch Int.random(in: 0..<60, using: &random) {
      case 0: try cache.removeResponse(to: request)
      case 1: try store.sweep()
      case 2: clock.advance(by: .seconds(20))
      default: break
      }
      let (response, body) = try await cache.respond(to: request) { request, _ in
        calls.change { $0 += 1 }
        let text = "\(request.path ?? "") \(request.headerFields[.acceptLanguage] ?? "")"
        let fields: HTTPFields = [.cacheControl: "max-age=60", .vary: "Accept-Language"]
        return (HTTPResponse(status: .ok, headerFields: fields), Data(text.utf8))
      }
      #expect(
        response.status == .ok && String(decoding: body, as: UTF8.self) == "\(path) \(language)")
    }
    let statistics = try #require(store.statistics.caches["responses"])
    #expect(statistics.deletions.cacheBudget.entries > 5)
    // Most are answered from the cache nevertheless.
    #expect(calls.read { $0 } < requests * 3 / 4)
  }

  @Test("A store that fails fails no request that only reads.")
  func closedStore() async throws {
    let site = try Site()
    site.replies(200, ["Cache-Control": "max-age=60"])
    _ = try await site.send()
    try site.store.close()
    #expect(try await site.send().body == "2")
    await #expect {
      _ = try await site.send(.post)
    } throws: { error in
      if case .closed? = error as? StoreError { true } else { false }
    }
  }
}

extension HTTPField.Name {
  fileprivate static let cacheStatus = named("Cache-Status")

  fileprivate static func named(_ name: String) -> HTTPField.Name {
    guard let name = HTTPField.Name(name) else { preconditionFailure("no name: \(name)") }
    return name
  }
}
