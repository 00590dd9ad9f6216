import Foundation
import Larder
import LarderEngine
import LarderFeeds
import LarderTesting
import Testing

/// What a loader finds in its cache, and that looking changes nothing.
@Suite(.timeLimit(.minutes(1))) struct LocalTests {
  /// Ages around the limit of seven days.
  static let ages: [(TimeInterval, isFresh: Bool)] = [
    (7 * day - 1, true), (7 * day, false), (7 * day + 1, false), (0, true), (-day, true),
    (100 * 365 * day, false),
  ]

  @Test(
    """
    GEN-41 GEN-53 GEN-63 RAM-33 RAM-46 EFA-30 EFA-43 IMG-28 IMG-40 IMG-50 \
    a new loader has told the store nothing
    """, arguments: Feed.all)
  func newLoaderIsSilent(feed: Feed) throws {
    #expect(try Bench(feed).engine.messages == [])
  }

  @Test("GEN-42 RAM-34 EFA-31 IMG-29 reading the cache is one lookup", arguments: Feed.all)
  func oneLookup(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.messages { try await bench.handles.cached(nil) } == [.retrieve])
  }

  @Test(
    "GEN-43 RAM-35 EFA-32 IMG-30 a cache that cannot be read is its own error",
    arguments: Feed.all)
  func retrievalError(feed: Feed) async throws {
    let bench = try Bench(feed)
    bench.engine.failReads(.io("unreadable"))

    let error = await #expect(throws: StoreError.self) { try await bench.handles.cached(nil) }

    guard case .io("unreadable") = error else { return unexpected(error) }
    let same = await feedError { try await bench.handles.load(.cacheOnly, nil) }
    guard case .cache(.io("unreadable")) = same else { return unexpected(same) }
  }

  @Test(
    "GEN-44 RAM-36 EFA-33 IMG-31 an empty cache has no items, and is no error",
    arguments: Feed.all)
  func emptyCache(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.handles.cached(nil) == [])
    let outcome = await feedError { try await bench.handles.load(.cacheOnly, nil) }
    guard case .notFound = outcome else { return unexpected(outcome) }
  }

  @Test(
    """
    GEN-45 GEN-46 GEN-47 GEN-49 RAM-37 RAM-38 RAM-39 RAM-41 EFA-34 EFA-35 \
    EFA-36 EFA-38 IMG-32 IMG-33 IMG-34 IMG-36 TIM-10 TIM-11 TIM-12 TIM-13 TIM-15 \
    a list is fresh until it is exactly seven days old
    """, arguments: Feed.all, ages)
  func freshness(feed: Feed, age: (TimeInterval, isFresh: Bool)) async throws {
    let bench = try Bench(feed)
    try bench.save(2, 1, 2, age: age.0)

    let found = try await bench.handles.cached(feed.sevenDays)
    #expect(found == (age.isFresh ? bench.items(2, 1, 2) : []))
  }

  @Test("GEN-48 RAM-40 EFA-37 IMG-35 an empty list in the cache is a hit", arguments: Feed.all)
  func emptyListIsAHit(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save()

    let loaded = try await bench.handles.load(.cacheOnly, nil)

    #expect(loaded.items == [] && loaded.fromCache)
    #expect(try await bench.handles.cached(nil) == [])
  }

  @Test(
    "GEN-50 RAM-42 EFA-39 IMG-37 whatever the cache holds, a look leaves it as it is",
    arguments: Feed.all)
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

  @Test(
    "GEN-51 RAM-43 EFA-40 IMG-38 the clock is read once, if something was found",
    arguments: Feed.all)
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
    "RAM-32 EFA-29 TIM-14 a maximum age given with the call decides",
    arguments: [Feed.characters, .essentialFeed],
    [(MaxAge.seconds(60), 60.0), (.days(30), 30 * day), (.unlimited, .infinity)])
  func maximumAgeOfTheCall(feed: Feed, limit: (MaxAge, seconds: Double)) async throws {
    let bench = try Bench(feed)
    for age in [limit.seconds - 1, limit.seconds, 400 * day] where age.isFinite {
      try bench.save(1, age: age)

      let expected = age < limit.seconds ? bench.items(1) : []
      #expect(try await bench.handles.cached(limit.0) == expected)
    }
  }

  @Test("EFA-29 without a maximum age, a saved feed of any age is fresh")
  func anyAge() async throws {
    let bench = try Bench(.essentialFeed)
    try bench.save(1, age: 400 * 365 * day)

    #expect(try await bench.handles.cached(nil) == bench.items(1))
  }

  @Test(
    "RAM-32 a call can only shorten what a lifetime of seven days keeps",
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
