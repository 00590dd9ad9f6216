import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Requests and values of a feed with HTTP caching.
@Suite(.timeLimit(.minutes(10))) struct HTTPCachingTests {
  private func bench(
    _ answers: [ScriptedClient.Answer], _ order: SourceOrder = .cacheThenRemote,
    then last: ScriptedClient.Answer = .unexpected, lifetime: Lifetime = SharedBench.lifetime,
    in directory: URL? = nil, _ change: (inout LoadPolicy) -> Void = { _ in }
  ) throws -> SharedBench {
    try SharedBench(order, answers, then: last, lifetime: lifetime, in: directory) {
      $0.httpCaching = true
      change(&$0)
    }
  }

  @Test("Status 304 confirms the saved value, and its fresh time begins again.")
  func notModified() async throws {
    let bench = try bench(
      [.words("a", fields: "ETag: \"1\"\nCache-Control: max-age=60"), .status(304), .status(304)])
    _ = try await bench.load()
    for round in 2...3 {
      bench.clock.advance(by: .seconds(60))
      let loaded = try await bench.load()
      #expect(loaded.value == ["a"] && loaded.origin != .loaded && loaded.isRevalidated)
      #expect(!loaded.isStale && loaded.isSaved && loaded.age == .zero && loaded.savedAt == nil)
      #expect(bench.client.requests.count == round)
      bench.clock.advance(by: .seconds(59))
      let fresh = try await bench.load()
      #expect(fresh.value == ["a"] && !fresh.isRevalidated && fresh.age == .seconds(59))
      bench.clock.advance(by: .seconds(1))
    }
  }

  @Test("Status 304 with header fields replaces what the entry has of them.")
  func updatedFields() async throws {
    let bench = try bench([
      .words("a", fields: "ETag: \"1\"\nCache-Control: max-age=60, stale-if-error=1000"),
      .status(304, fields: "ETag: \"2\"\nCache-Control: max-age=10, must-revalidate"),
      .status(304), .status(503),
    ])
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.load().isRevalidated)
    bench.clock.advance(by: .seconds(10))
    // The third response says nothing, so what the second one has said stays.
    #expect(try await bench.load().isRevalidated)
    #expect(bench.client.requests[2].headerFields[.ifNoneMatch] == "\"2\"")
    bench.clock.advance(by: .seconds(10))
    let error = await feedError { try await bench.load() }
    #expect(error?.reason == .invalidData)
    #expect(bench.client.requests[3].headerFields[.ifNoneMatch] == "\"2\"")
  }

  @Test("The age of a response with status 304 counts, and the lifetime of the first one stays.")
  func confirmedAge() async throws {
    let directives = "max-age=60, stale-if-error=100"
    let bench = try bench(
      [
        .words("a", fields: "ETag: \"1\"\nCache-Control: \(directives)\nAge: 50"), .status(304),
        .status(304, fields: "Age: 50"), .status(304, fields: "Age: 160"),
      ], then: .status(503))
    _ = try await bench.load()
    for (fresh, isUsed) in [(10.0, true), (60, true), (10, true), (0, false)] {
      if fresh > 0 {
        bench.clock.advance(by: .seconds(fresh - 1))
        let loaded = try await bench.load()
        #expect(!loaded.isStale && !loaded.isRevalidated)
        bench.clock.advance(by: .seconds(1))
      }
      if isUsed {
        #expect(try await bench.load().isRevalidated)
      } else {
        // The end of freshness was 100 seconds ago when the last response arrived.
        #expect(await feedError { try await bench.load() }?.reason == .invalidData)
      }
    }
    #expect(bench.client.requests.count == 5)
  }

  @Test(
    "A window of stale use follows the cache's lifetime, and keeps the entry.",
    arguments: [
      Lifetime.seconds(100), .fresh(for: .seconds(100), thenStaleFor: .seconds(5000)),
    ])
  func windowWithoutLifetime(lifetime: Lifetime) async throws {
    let bench = try bench(
      [.words("a", fields: "ETag: \"1\"\nCache-Control: stale-if-error=600"), .status(503)],
      then: .status(503), lifetime: lifetime)
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(99))
    #expect(try await !bench.load().isStale)
    for age in [2.0, 598] {
      bench.clock.advance(by: .seconds(age))
      #expect(try bench.store.sweep() == 0)
      #expect(try await bench.load().isStale)
    }
    bench.clock.advance(by: .seconds(1))
    #expect(await feedError { try await bench.load() }?.reason == .invalidData)
  }

  @Test("A value whose window ends during the request is not returned when that fails.")
  func windowEndsDuringRequest() async throws {
    for (seconds, isUsed) in [(99.0, true), (100, false)] {
      let bench = try bench(
        [.words("a", fields: "Cache-Control: max-age=60, stale-if-error=100"), .hold])
      _ = try await bench.load()
      bench.clock.advance(by: .seconds(60))
      let load = Task { try await bench.load() }
      try await bench.client.waitForHeldRequests(1)
      bench.clock.advance(by: .seconds(seconds))
      bench.client.release(1, with: .status(503))
      if isUsed {
        #expect(try await load.value.isStale)
      } else {
        #expect(await feedError { try await load.value }?.reason == .invalidData)
      }
    }
  }

  @Test("An expired value that no sweep has removed is confirmed, too.")
  func expired() async throws {
    let bench = try bench(
      [.words("a", fields: "ETag: \"1\""), .status(304)], lifetime: .seconds(60))
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(3600))
    let loaded = try await bench.load()
    #expect(loaded.value == ["a"] && loaded.isRevalidated)
    #expect(bench.client.requests[1].headerFields[.ifNoneMatch] == "\"1\"")
  }

  @Test("A value with its own short lifetime is kept for a condition as long as the cache's.")
  func keptForCondition() async throws {
    let bench = try bench(
      [.words("a", fields: "ETag: \"1\"\nCache-Control: no-cache"), .status(304)])
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(24 * 3600))
    #expect(try bench.store.sweep() == 0)
    #expect(try await bench.load().isRevalidated)
  }

  @Test("Status 304 to a request without a condition is invalid data.")
  func unaskedNotModified() async throws {
    let bench = try bench([.status(304)])
    let error = await feedError { try await bench.load() }
    #expect(error?.reason == .invalidData)
  }

  @Test("Without HTTP caching, header fields mean nothing.")
  func off() async throws {
    let fields = "ETag: \"1\"\nCache-Control: no-store, max-age=1\nVary: *"
    let bench = try SharedBench(.cacheThenRemote, [.words("a", fields: fields), .status(304)])
    #expect(try await bench.load().isSaved)
    bench.clock.advance(by: .seconds(3600))
    let error = await feedError { try await bench.load() }
    #expect(error?.reason == .invalidData)
    #expect(bench.client.requests[1].headerFields.isEmpty)
  }

  @Test("A new value replaces the saved one, with its header fields.")
  func replaced() async throws {
    let bench = try bench([
      .words("a", fields: "ETag: \"1\"\nCache-Control: max-age=60"), .words("b"),
      .words("c"),
    ])
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(60))
    let loaded = try await bench.load()
    #expect(loaded.value == ["b"] && loaded.origin == .loaded && !loaded.isRevalidated)
    bench.clock.advance(by: .seconds(3599))
    #expect(try await bench.load().value == ["b"])
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.load().value == ["c"])
    #expect(bench.client.requests[2].headerFields[.ifNoneMatch] == nil)
  }

  @Test("The server first asks with a condition each time, and falls back as the policy says.")
  func serverFirst() async throws {
    let bench = try bench(
      [.words("a", fields: "ETag: \"1\"\nCache-Control: max-age=60"), .status(304), .offline],
      .remoteThenCache)
    _ = try await bench.load()
    #expect(try await bench.load().isRevalidated)
    let loaded = try await bench.load()
    #expect(loaded.value == ["a"] && loaded.remoteFailure?.kind == .connectivity && !loaded.isStale)
  }

  @Test("A maximum age makes a fresh value stale for the load, and must-revalidate does not count.")
  func maximumAge() async throws {
    let fields = "Cache-Control: max-age=3600, must-revalidate"
    let bench = try bench([.words("a", fields: fields), .offline, .offline]) {
      $0.loading.staleIfError = .seconds(Int.max)
    }
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.load(.seconds(61)).origin != .loaded)
    #expect(bench.client.requests.count == 1)
    let stale = try await bench.load(.seconds(60))
    #expect(stale.value == ["a"] && stale.isStale && stale.remoteFailure?.kind == .connectivity)
    bench.clock.advance(by: .seconds(3540))
    #expect(await feedError { try await bench.load(.seconds(60)) }?.reason == .connectivity)
  }

  @Test("A value that must be confirmed is not returned, however slow the server.")
  func mustRevalidateAndTime() async throws {
    for order in [SourceOrder.cacheThenRemote, .remoteThenCache] {
      let fields = "Cache-Control: max-age=60, must-revalidate"
      let bench = try bench([.words("a", fields: fields), .hold], order) {
        $0.loading.softTimeout = .seconds(2)
        $0.loading.staleWhileRevalidate = true
      }
      _ = try await bench.load()
      let timers = bench.timer.started.count
      bench.clock.advance(by: .seconds(60))
      async let loaded = bench.load()
      try await bench.client.waitForHeldRequests(1)
      bench.client.release(1, with: .words("b"))
      #expect(try await loaded.value == ["b"])
      #expect(bench.timer.started.count == timers)
    }
  }

  @Test("A value that must be confirmed is not returned from the cache only.")
  func mustRevalidateWithoutServer() async throws {
    let fields = "Cache-Control: max-age=60, must-revalidate"
    let bench = try bench([.words("a", fields: fields)]) {
      $0.loading.staleIfError = .seconds(Int.max)
    }
    _ = try await bench.load()
    var offline = bench.words
    offline.policy.order = .cacheOnly
    #expect(try await offline.load("a").value == ["a"])
    bench.clock.advance(by: .seconds(60))
    let error = await feedError { [offline] in try await offline.load("a") }
    guard case .notFound? = error else { return unexpected(error) }
  }

  @Test("A failure that is not the server's trouble does not use stale-if-error.")
  func otherFailures() async throws {
    let fields = "Cache-Control: max-age=60, stale-if-error=1000"
    let answers: [(ScriptedClient.Answer, isTrouble: Bool)] = [
      (.status(500), true), (.status(502), true), (.status(503), true), (.status(504), true),
      (.offline, true), (.status(404), false), (.status(403), false), (.reply(200, "{"), false),
    ]
    for (answer, isTrouble) in answers {
      let bench = try bench([.words("a", fields: fields), answer])
      _ = try await bench.load()
      bench.clock.advance(by: .seconds(60))
      if isTrouble {
        let loaded = try await bench.load()
        #expect(loaded.value == ["a"] && loaded.isStale && loaded.remoteFailure != nil)
      } else {
        #expect(await feedError { try await bench.load() }?.reason == .invalidData)
      }
    }
  }

  @Test("What a response says is kept when the store is closed and opened again.")
  func reopened() async throws {
    let directory = try TemporaryDirectory()
    let fields = "ETag: \"1\"\nCache-Control: max-age=60, must-revalidate, stale-if-error=10"
    let first = try bench([.words("a", fields: fields)], in: URL(filePath: directory.path))
    _ = try await first.load()
    try first.store.close()

    let second = try bench([.status(503), .status(304)], in: URL(filePath: directory.path)) {
      $0.loading.staleIfError = .seconds(Int.max)
    }
    second.clock.advance(by: .seconds(59))
    #expect(try await second.load().origin != .loaded)
    second.clock.advance(by: .seconds(1))
    let error = await feedError { try await second.load() }
    #expect(error?.reason == .invalidData)
    #expect(try await second.load().isRevalidated)
    #expect(second.client.requests[1].headerFields[.ifNoneMatch] == "\"1\"")
    try second.store.close()
  }

  @Test("A validator that no entry can hold is not saved; the value is.")
  func longValidator() async throws {
    let tag = "\"\(String(repeating: "x", count: 5000))\""
    let bench = try bench(
      [.words("a", fields: "ETag: \(tag)\nCache-Control: max-age=60"), .words("b")])
    #expect(try await bench.load().isSaved)
    bench.clock.advance(by: .seconds(60))
    _ = try await bench.load()
    #expect(bench.client.requests[1].headerFields.isEmpty)
  }

  @Test("A feed that saves nothing asks without a condition.")
  func remoteOnly() async throws {
    let bench = try bench([.words("b", fields: "ETag: \"2\"")], .remoteOnly)
    try bench.words.cache?.save(["a"], for: "a", validator: "\"1\"")
    let loaded = try await bench.load()
    #expect(loaded.value == ["b"] && !loaded.isSaved)
    #expect(bench.client.requests[0].headerFields.isEmpty)
    #expect(try bench.saved() == ["a"])
  }

  @Test("The response to a request by another method than GET is not saved.")
  func otherMethod() async throws {
    let client = ScriptedClient([.reply(200, "[]")], then: .unexpected)
    var policy = LoadPolicy(.cacheThenRemote)
    policy.httpCaching = true
    let store = Store.inMemory()
    let loader = Loader<Void, String, [String]>(
      .json(
        [String].self,
        request: { HTTPRequest(method: .post, url: web("https://words.example.org/search")) },
        body: { Data("q=a".utf8) }, { $0 }),
      client: client, cache: try store.cache("words", of: [String].self), key: { "all" },
      policy: policy)
    #expect(try await !loader.load().isSaved)
    #expect(client.requests[0].method == .post && client.bodies == [Data("q=a".utf8)])
  }

  @Test("One request confirms a value for all loads at the same time.")
  func sharedConfirmation() async throws {
    let bench = try bench([.words("a", fields: "ETag: \"1\"\nCache-Control: max-age=60"), .hold])
    _ = try await bench.load()
    bench.clock.advance(by: .seconds(60))
    try await withThrowingTaskGroup { group in
      for _ in 0..<100 { group.addTask { try await bench.load() } }
      try await bench.client.waitForHeldRequests(1)
      await bench.joined(99)
      bench.client.release(0 + 1, with: .status(304))
      for try await loaded in group { #expect(loaded.value == ["a"] && loaded.isRevalidated) }
    }
    #expect(bench.client.requests.count == 2)
  }
}
