import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Loads that share requests, and stale values.
@Suite(.timeLimit(.minutes(10))) struct SharingTests {
  private static let orders: [SourceOrder] = [.cacheThenRemote, .remoteThenCache, .remoteOnly]

  // MARK: - Sharing

  @Test("A thousand loads at the same time make one request.", arguments: orders)
  func oneRequest(order: SourceOrder) async throws {
    let bench = try SharedBench(order, [.hold])
    try await withThrowingTaskGroup { group in
      for _ in 0..<1000 { group.addTask { try await bench.load() } }
      try await bench.client.waitForHeldRequests(1)
      await bench.joined(999)
      bench.client.release(0, with: .words("x"))
      for try await loaded in group {
        #expect(loaded.value == ["x"] && loaded.origin == .loaded)
        #expect(loaded.isSaved == (order != .remoteOnly))
      }
    }
    #expect(bench.client.requests.count == 1)
    #expect(try bench.saved() == (order == .remoteOnly ? nil : ["x"]))
  }

  @Test("Loads that share a request share its failure; the next load makes another one.")
  func sharedFailure() async throws {
    let bench = try SharedBench(.cacheThenRemote, [.hold, .words("y")])
    async let first = feedError { try await bench.load() }
    try await bench.client.waitForHeldRequests(1)
    async let second = feedError { try await bench.load() }
    await bench.joined(1)
    bench.client.release(0, with: .status(404))
    #expect(await first?.reason == .invalidData)
    #expect(await second?.reason == .invalidData)
    #expect(try await bench.load().value == ["y"])
  }

  @Test("A cancelled load leaves the others their request; the last one cancels it.")
  func cancelling() async throws {
    let bench = try SharedBench(.cacheThenRemote, [.hold])
    let first = Task { try await bench.load() }
    try await bench.client.waitForHeldRequests(1)
    let second = Task { try await bench.load() }
    await bench.joined(1)
    first.cancel()
    await #expect(throws: CancellationError.self) { _ = try await first.value }
    #expect(bench.client.cancelledRequests.isEmpty)
    second.cancel()
    await #expect(throws: CancellationError.self) { _ = try await second.value }
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: .words("x"))
    #expect(try bench.saved() == nil)
  }

  @Test("A value that is saved during the request wins.")
  func savedMeanwhile() async throws {
    let bench = try SharedBench(.remoteThenCache, [.hold])
    async let loaded = bench.load()
    try await bench.client.waitForHeldRequests(1)
    try bench.save("mine")
    bench.client.release(0, with: .words("x"))
    let value = try await loaded
    #expect(value.value == ["x"] && !value.isSaved && value.saveFailure == nil)
    #expect(try bench.saved() == ["mine"])
  }

  @Test("Loads of different keys make a request each.")
  func differentKeys() async throws {
    let bench = try SharedBench(.cacheThenRemote, [.words("x"), .words("y")])
    let values = try await [bench.words.load("a").value, bench.words.load("b").value]
    #expect(values == [["x"], ["y"]])
    #expect(bench.client.urls.map(\.lastPathComponent) == ["a", "b"])
  }

  // MARK: - Stale values

  @Test(
    "The cache for an hour, then the server, then whatever is saved: one policy.",
    arguments: [false, true])
  func hourThenServerThenAnything(isOnline: Bool) async throws {
    let bench = try SharedBench(
      .cacheThenRemote, [], then: isOnline ? .words("new") : .offline, lifetime: .unlimited
    ) {
      $0.loading.maxAge = .hours(1)
      $0.loading.staleIfError = .seconds(Int.max)
    }
    try bench.save("old", age: 3599)
    let fresh = try await bench.load()
    #expect(fresh.value == ["old"] && !fresh.isStale && fresh.remoteFailure == nil)
    #expect(bench.client.requests.isEmpty)

    bench.clock.advance(by: .seconds(400 * 86_400))
    let late = try await bench.load()
    #expect(late.value == [isOnline ? "new" : "old"] && late.isStale == !isOnline)
    #expect(late.remoteFailure?.kind == (isOnline ? nil : .connectivity))
    #expect(bench.client.requests.count == 1)
  }

  @Test("An expired value is not returned, whatever the policy.", arguments: orders)
  func expired(order: SourceOrder) async throws {
    let bench = try SharedBench(order, [.offline]) {
      $0.loading.staleIfError = .seconds(Int.max)
      $0.loading.softTimeout = .seconds(1)
    }
    try bench.save("old", age: 25 * 3600)
    let error = await feedError { try await bench.load() }
    #expect(error?.reason == .connectivity)
  }

  @Test(
    "After a failure, the server first falls back to a stale value only if the policy says so.",
    arguments: [(nil, false), (.seconds(3600), false), (nil, true)] as [(Duration?, Bool)])
  func staleFallback(ifError: Duration?, whileRevalidating: Bool) async throws {
    let bench = try SharedBench(.remoteThenCache, [.status(500), .status(500)]) {
      $0.coalesces = true
      $0.loading.staleIfError = ifError
      $0.loading.staleWhileRevalidate = whileRevalidating
    }
    try bench.save("old", age: 1800)
    let fresh = try await bench.load()
    #expect(fresh.value == ["old"] && !fresh.isStale && fresh.remoteFailure?.kind == .invalidData)
    bench.clock.advance(by: .seconds(3600))
    if ifError == nil, !whileRevalidating {
      let error = await feedError { try await bench.load() }
      #expect(error?.reason == .invalidData)
    } else {
      let stale = try await bench.load()
      #expect(stale.value == ["old"] && stale.isStale && stale.remoteFailure?.kind == .invalidData)
      #expect(stale.age == .seconds(5400) && stale.savedAt != nil)
    }
  }

  @Test("The server first does not fall back to a value of the maximum age.")
  func maximumAgeOfFallback() async throws {
    let bench = try SharedBench(.remoteThenCache, [.offline, .offline])
    try bench.save("old", age: 59)
    #expect(try await bench.load(.minutes(1)).value == ["old"])
    bench.clock.advance(by: .seconds(1))
    let error = await feedError { try await bench.load(.minutes(1)) }
    #expect(error?.reason == .connectivity)
  }

  @Test("A stale value is returned at once, and refreshed in the background by one request.")
  func whileRefreshing() async throws {
    let bench = try SharedBench(.cacheThenRemote, [.hold]) {
      $0.loading.staleWhileRevalidate = true
    }
    try bench.save("old", age: 3600)
    for _ in 0..<3 {
      let stale = try await bench.load()
      #expect(stale.value == ["old"] && stale.isStale && stale.isRefreshing && stale.isSaved)
    }
    try await bench.client.waitForHeldRequests(1)
    bench.client.release(0, with: .words("new"))
    try await bench.saves(["new"])
    let fresh = try await bench.load()
    #expect(fresh.value == ["new"] && !fresh.isStale)
    #expect(bench.client.requests.count == 1)
  }

  @Test("The cache only returns a stale value if the policy allows stale values.")
  func cacheOnly() async throws {
    let bench = try SharedBench(.cacheOnly, []) { $0.loading.staleIfError = .seconds(3600) }
    try bench.save("old", age: 3600)
    #expect(try await bench.load().isStale)
    var strict = bench.words
    strict.policy.loading.staleIfError = nil
    let error = await feedError { try await strict.load("a") }
    guard case .notFound? = error else { return unexpected(error) }
  }

  // MARK: - Time limits

  @Test(
    "A slow server is not waited for if the cache has a value; its value is saved later.",
    arguments: [SourceOrder.remoteThenCache, .cacheThenRemote])
  func softTimeout(order: SourceOrder) async throws {
    let bench = try SharedBench(order, [.hold]) {
      $0.loading.softTimeout = .seconds(2)
    }
    try bench.save("old", age: 3600)
    async let loaded = bench.load()
    try await bench.client.waitForHeldRequests(1)
    #expect(await bench.timer.fire(.seconds(2)) == 1)
    let value = try await loaded
    #expect(value.value == ["old"] && value.isRefreshing && value.isStale)
    bench.client.release(0, with: .words("new"))
    try await bench.saves(["new"])
  }

  @Test("Within the soft timeout, the server first returns a fresh value as such.")
  func softTimeoutWithFreshValue() async throws {
    let bench = try SharedBench(.remoteThenCache, [.hold]) {
      $0.loading.softTimeout = .seconds(2)
    }
    try bench.save("old", age: 60)
    async let loaded = bench.load()
    try await bench.client.waitForHeldRequests(1)
    #expect(await bench.timer.fire(.seconds(2)) == 1)
    let value = try await loaded
    #expect(value.value == ["old"] && !value.isStale && value.isRefreshing)
    bench.client.release(0, with: .offline)
  }

  @Test("A slow server is waited for if the cache has no value.")
  func softTimeoutWithoutValue() async throws {
    let bench = try SharedBench(.remoteThenCache, [.hold]) {
      $0.loading.softTimeout = .seconds(2)
    }
    async let loaded = bench.load()
    try await bench.client.waitForHeldRequests(1)
    #expect(await bench.timer.fire(.seconds(2)) == 1)
    bench.client.release(0, with: .words("new"))
    #expect(try await loaded.value == ["new"])
  }

  @Test(
    "A server that takes too long has failed: it is no connection, or the cache is used.",
    arguments: orders, [false, true])
  func hardTimeout(order: SourceOrder, isSaved: Bool) async throws {
    let bench = try SharedBench(order, [.hold]) {
      $0.loading.hardTimeout = .seconds(9)
      $0.loading.staleIfError = .seconds(3600)
    }
    if isSaved { try bench.save("old", age: 7200) }
    let load = Task { try await bench.load() }
    try await bench.client.waitForHeldRequests(1)
    // The timers of the call and of the load.
    await bench.timer.wait(untilRunning: 2)
    #expect(await bench.timer.fire(.seconds(9)) == 2)
    if isSaved, order != .remoteOnly {
      let stale = try await load.value
      #expect(stale.value == ["old"] && stale.isStale && stale.remoteFailure?.kind == .connectivity)
    } else {
      let error = await feedError { try await load.value }
      #expect(error?.reason == .connectivity)
    }
    bench.client.release(0, with: .offline)
  }

  // MARK: - The options of a cache

  @Test(
    "A stale value is returned for so long after its fresh time, and not later.",
    arguments: [SourceOrder.cacheOnly, .cacheThenRemote, .remoteThenCache],
    [nil, .minutes(30)] as [MaxAge?])
  func limitOfStaleUse(order: SourceOrder, maxAge: MaxAge?) async throws {
    let bench = try SharedBench(order, [], then: .offline) {
      $0.loading.staleIfError = .seconds(600)
      $0.loading.maxAge = maxAge
    }
    try bench.save("old", age: (maxAge == nil ? 3600 : 1800) + 600)
    let stale = try await bench.load()
    #expect(stale.value == ["old"] && stale.isStale)
    #expect(stale.remoteFailure?.kind == (order == .cacheOnly ? nil : .connectivity))
    bench.clock.advance(by: .seconds(1))
    #expect(await feedError { try await bench.load() } != nil)
  }

  @Test("Shortly after a failure, a stale value is returned without another request.")
  func throttle() async throws {
    let bench = try SharedBench(.cacheThenRemote, [.status(503), .words("new")]) {
      $0.loading.staleIfError = .seconds(3600)
      $0.loading.retryThrottle = .seconds(30)
    }
    try bench.save("old", age: 3600)
    for seconds in [0, 29.0] {
      bench.clock.advance(by: .seconds(seconds))
      let stale = try await bench.load()
      #expect(stale.value == ["old"] && stale.remoteFailure?.kind == .invalidData)
    }
    #expect(bench.client.requests.count == 1)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.load().value == ["new"])
  }

  @Test(
    "A value at the end of its fresh time is returned, and refreshed.", arguments: [false, true])
  func refreshAhead(httpCaching: Bool) async throws {
    let bench = try SharedBench(.cacheThenRemote, [.hold]) {
      $0.loading.refreshAhead = 0.5
      $0.httpCaching = httpCaching
    }
    try bench.save("old", age: 3599)
    let fresh = try await bench.load()
    #expect(fresh.value == ["old"] && !fresh.isStale && fresh.isRefreshing)
    try await bench.client.waitForHeldRequests(1)
    bench.client.release(0, with: .words("new"))
    try await bench.saves(["new"])
  }

  @Test(
    "An option outside its limits is the error of each load, which makes no request.",
    arguments: orders + [.cacheOnly])
  func invalidOption(order: SourceOrder) async throws {
    let changes: [@Sendable (inout LoadPolicy) -> Void] = [
      { $0.loading.softTimeout = .seconds(-5) }, { $0.loading.staleIfError = .seconds(-1) },
      { $0.loading.retries = Loading.Retries(extra: -1) },
    ]
    for change in changes {
      let bench = try SharedBench(order, [], change)
      try bench.save("old")
      let error = await feedError { try await bench.load() }
      guard case .cache(.invalidArgument)? = error else { return unexpected(error) }
      #expect(error?.description.hasPrefix("Invalid argument: Loading.") == true)
      #expect(bench.client.requests.isEmpty)
    }
  }

  @Test("A load that joins one of another part of the program does not throw the error of that.")
  func foreignLoad() async throws {
    struct Foreign: Error {}
    let bench = try SharedBench(.cacheThenRemote, [.words("new")])
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    let cache = try #require(bench.words.cache)
    let foreign = Task {
      try await cache.value(for: "a") {
        start.finish()
        for await _ in ended {}
        throw Foreign()
      }
    }
    for await _ in started {}
    async let loaded = bench.load()
    await bench.joined(1)
    end.finish()
    await #expect(throws: Foreign.self) { _ = try await foreign.value }
    #expect(try await loaded.value == ["new"])
  }

  // MARK: - Failures of the cache

  @Test("If the cache is closed, the value comes from the server, not saved.", arguments: orders)
  func closedStore(order: SourceOrder) async throws {
    let bench = try SharedBench(order, [.words("x")])
    try bench.store.close()
    let loaded = try await bench.load()
    #expect(loaded.value == ["x"] && !loaded.isSaved)
    guard order != .remoteOnly else { return }
    guard case .closed? = loaded.saveFailure else { return unexpected(loaded.saveFailure) }
  }

  @Test("If both fail, the server first reports the failure of the cache, too.")
  func bothFail() async throws {
    let bench = try SharedBench(.remoteThenCache, [.offline])
    try bench.store.close()
    let error = await feedError { try await bench.load() }
    guard case .remote(let failure, cache: .closed?)? = error, failure.kind == .connectivity else {
      return unexpected(error)
    }
  }

  @Test("Without a cache, loads make a request each.")
  func withoutCache() async throws {
    var policy = LoadPolicy(.remoteOnly)
    policy.coalesces = true
    let client = ScriptedClient([.reply(200, "[]"), .reply(200, "[]")], then: .unexpected)
    let loader = Loader<Void, String, [String]>(
      .json([String].self, at: { web("https://words.example.org") }, { $0 }), client: client,
      cache: nil, key: { "all" }, policy: policy)
    _ = try await (loader.load(), loader.load())
    #expect(client.requests.count == 2)
  }
}
