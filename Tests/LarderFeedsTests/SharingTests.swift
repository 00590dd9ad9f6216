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
        #expect(loaded.value == ["x"] && loaded.source == .remote)
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
      $0.maxAge = .hours(1)
      $0.servesStale = .onFailure
    }
    try bench.save("old", age: 3599)
    let fresh = try await bench.load()
    #expect(fresh.value == ["old"] && !fresh.isStale && fresh.remoteFailure == nil)
    #expect(bench.client.requests.isEmpty)

    bench.clock.advance(by: .seconds(400 * 86_400))
    let late = try await bench.load()
    #expect(late.value == [isOnline ? "new" : "old"] && late.isStale == !isOnline)
    #expect(late.remoteFailure == (isOnline ? nil : .connectivity))
    #expect(bench.client.requests.count == 1)
  }

  @Test("An expired value is not returned, whatever the policy.", arguments: orders)
  func expired(order: SourceOrder) async throws {
    let bench = try SharedBench(order, [.offline]) {
      $0.servesStale = .onFailure
      $0.softTimeout = .seconds(1)
    }
    try bench.save("old", age: 25 * 3600)
    let error = await feedError { try await bench.load() }
    #expect(error?.reason == .connectivity)
  }

  @Test(
    "After a failure, the server first falls back to a stale value only if the policy says so.",
    arguments: [StaleUse.never, .onFailure, .whileRefreshing])
  func staleFallback(use: StaleUse) async throws {
    let bench = try SharedBench(.remoteThenCache, [.status(500), .status(500)]) {
      $0.coalesces = true
      $0.servesStale = use
    }
    try bench.save("old", age: 1800)
    let fresh = try await bench.load()
    #expect(fresh.value == ["old"] && !fresh.isStale && fresh.remoteFailure == .invalidData)
    bench.clock.advance(by: .seconds(3600))
    if use == .never {
      let error = await feedError { try await bench.load() }
      #expect(error?.reason == .invalidData)
    } else {
      let stale = try await bench.load()
      #expect(stale.value == ["old"] && stale.isStale && stale.remoteFailure == .invalidData)
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
    let bench = try SharedBench(.cacheThenRemote, [.hold]) { $0.servesStale = .whileRefreshing }
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
    let bench = try SharedBench(.cacheOnly, []) { $0.servesStale = .onFailure }
    try bench.save("old", age: 3600)
    #expect(try await bench.load().isStale)
    var strict = bench.words
    strict.policy.servesStale = .never
    let error = await feedError { try await strict.load("a") }
    guard case .notFound? = error else { return unexpected(error) }
  }

  // MARK: - Time limits

  @Test(
    "A slow server is not waited for if the cache has a value; its value is saved later.",
    arguments: [SourceOrder.remoteThenCache, .cacheThenRemote])
  func softTimeout(order: SourceOrder) async throws {
    let bench = try SharedBench(order, [.hold]) {
      $0.softTimeout = .seconds(2)
      $0.servesStale = .onFailure
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

  @Test("A negative time counts as none: the value in the cache is returned at once.")
  func negativeTimeout() async throws {
    let bench = try SharedBench(.remoteThenCache, [.hold]) { $0.softTimeout = .seconds(-5) }
    try bench.save("old", age: 60)
    async let loaded = bench.load()
    try await bench.client.waitForHeldRequests(1)
    #expect(await bench.timer.fire(.zero) == 1)
    #expect(try await loaded.value == ["old"])
    bench.client.release(0, with: .offline)
  }

  @Test("A slow server is waited for if the cache has no value that may be returned.")
  func softTimeoutWithoutValue() async throws {
    let bench = try SharedBench(.remoteThenCache, [.hold]) { $0.softTimeout = .seconds(2) }
    try bench.save("old", age: 3600)
    async let loaded = bench.load()
    try await bench.client.waitForHeldRequests(1)
    bench.client.release(0, with: .words("new"))
    #expect(try await loaded.value == ["new"])
    #expect(bench.timer.started.isEmpty)
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
    guard case .remote(.connectivity, cache: .closed?)? = error else { return unexpected(error) }
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
