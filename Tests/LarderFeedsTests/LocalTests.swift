import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// A loader reads its cache with one lookup, and changes nothing.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct LocalTests {
  /// Ages around the limit of seven days.
  static let ages: [(TimeInterval, isFresh: Bool)] = [
    (7 * day - 1, true), (7 * day, false), (7 * day + 1, false), (0, true), (-day, true),
    (100 * 365 * day, false),
  ]

  @Test("A new loader of an open cache does not use the store.", arguments: Feed.all)
  func newLoaderIsSilent(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.messages { _ = try feed.open(bench.client, bench.store) } == [])
  }

  @Test("Reading the cache is one lookup.", arguments: Feed.all)
  func oneLookup(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.messages { try await bench.handles.cached(nil) } == [.retrieve])
  }

  @Test("A cache that cannot be read is an error.", arguments: Feed.all)
  func retrievalError(feed: Feed) async throws {
    let bench = try Bench(feed)
    bench.engine.failReads(.io("unreadable"))

    let error = await #expect(throws: StoreError.self) { try await bench.handles.cached(nil) }

    guard case .io("unreadable") = error else { return unexpected(error) }
    let same = await feedError { try await bench.handles.load(.cacheOnly, nil) }
    guard case .cache(.io("unreadable")) = same else { return unexpected(same) }
  }

  @Test("An empty cache has no items, which is not an error.", arguments: Feed.all)
  func emptyCache(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.handles.cached(nil) == [])
    let outcome = await feedError { try await bench.handles.load(.cacheOnly, nil) }
    guard case .notFound = outcome else { return unexpected(outcome) }
  }

  @Test("A list is fresh until it is exactly seven days old.", arguments: Feed.all, ages)
  func freshness(feed: Feed, age: (TimeInterval, isFresh: Bool)) async throws {
    let bench = try Bench(feed)
    try bench.save(2, 1, 2, age: age.0)

    let found = try await bench.handles.cached(feed.sevenDays)
    #expect(found == (age.isFresh ? bench.items(2, 1, 2) : []))
  }

  @Test("An empty list in the cache is a hit.", arguments: Feed.all)
  func emptyListIsAHit(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save()

    let loaded = try await bench.handles.load(.cacheOnly, nil)

    #expect(loaded.items == [] && loaded.fromCache)
    #expect(try await bench.handles.cached(nil) == [])
  }

  @Test("A read of the cache changes nothing, whatever the cache holds.", arguments: Feed.all)
  func lookChangesNothing(feed: Feed) async throws {
    for age in [nil, 0, 7 * day, 8 * day] as [TimeInterval?] {
      let bench = try Bench(feed)
      if let age { try bench.save(1, age: age) }
      let before = try bench.handles.lookup()

      let messages = try await bench.messages { try await bench.handles.cached(feed.sevenDays) }
      #expect(messages == [.retrieve])
      #expect(try bench.handles.lookup() == before)
    }
    let bench = try Bench(feed)
    try bench.save(1)
    try bench.damageRecord()

    let messages = await bench.messages { try? await bench.handles.cached(nil) }

    #expect(messages == [.retrieve])
    #expect(throws: StoreError.self) { try bench.handles.lookup() }
  }

  @Test("The clock is read once, and only if there is an entry.", arguments: Feed.all)
  func clockIsReadOnce(feed: Feed) async throws {
    let bench = try Bench(feed)
    let empty = bench.clock.readings
    _ = try await bench.handles.cached(nil)
    #expect(bench.clock.readings == empty)

    try bench.save(1)
    let found = bench.clock.readings
    _ = try await bench.handles.cached(nil)
    #expect(bench.clock.readings == found + 1)
  }

  @Test(
    "A maximum age given with the call decides.", arguments: [Feed.characters, .essentialFeed],
    [(MaxAge.seconds(60), 60.0), (.days(30), 30 * day), (.unlimited, .infinity)])
  func maximumAgeOfTheCall(feed: Feed, limit: (MaxAge, seconds: Double)) async throws {
    let bench = try Bench(feed)
    for age in [limit.seconds - 1, limit.seconds, 400 * day] where age.isFinite {
      try bench.save(1, age: age)

      let expected = age < limit.seconds ? bench.items(1) : []
      #expect(try await bench.handles.cached(limit.0) == expected)
    }
  }

  @Test("Without a maximum age, a saved feed of any age is fresh.")
  func anyAge() async throws {
    let bench = try Bench(.essentialFeed)
    try bench.save(1, age: 400 * 365 * day)

    #expect(try await bench.handles.cached(nil) == bench.items(1))
  }

  @Test(
    "A maximum age can only shorten a lifetime of seven days.",
    arguments: [Feed.genres, .imageFeed])
  func callOnlyShortens(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save(1, age: 60)

    #expect(try await bench.handles.cached(.seconds(61)) == bench.items(1))
    #expect(try await bench.handles.cached(.seconds(60)) == [])
    try bench.save(1, age: 7 * day)
    #expect(try await bench.handles.cached(.unlimited) == [])
  }
}
