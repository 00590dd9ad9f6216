import Foundation
import Larder
import LarderEngine
import LarderFeeds
import LarderTesting
import Testing

/// What a loader finds in its cache, and that looking changes nothing.
@Suite(.timeLimit(.minutes(1))) struct LocalTests {
  /// Ages around the limit of both feeds.
  static let ages: [(TimeInterval, isFresh: Bool)] = [
    (7 * day - 1, true), (7 * day, false), (7 * day + 1, false), (0, true), (-day, true),
    (100 * 365 * day, false),
  ]

  @Test(
    "GEN-41 GEN-53 GEN-63 RAM-33 RAM-46 a new loader has told the store nothing",
    arguments: Feed.all)
  func newLoaderIsSilent(feed: Feed) throws {
    #expect(try Bench(feed).engine.messages == [])
  }

  @Test("GEN-42 RAM-34 reading the cache is one lookup", arguments: Feed.all)
  func oneLookup(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.messages { try await bench.handles.cached(nil) } == [.retrieve])
  }

  @Test("GEN-43 RAM-35 a cache that cannot be read is its own error", arguments: Feed.all)
  func retrievalError(feed: Feed) async throws {
    let bench = try Bench(feed)
    bench.engine.failReads(.io("unreadable"))

    let error = await #expect(throws: StoreError.self) { try await bench.handles.cached(nil) }

    guard case .io("unreadable") = error else { return unexpected(error) }
    let same = await feedError { try await bench.handles.load(.cacheOnly, nil) }
    guard case .cache(.io("unreadable")) = same else { return unexpected(same) }
  }

  @Test("GEN-44 RAM-36 an empty cache has no items, and is no error", arguments: Feed.all)
  func emptyCache(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.handles.cached(nil) == [])
    let outcome = await feedError { try await bench.handles.load(.cacheOnly, nil) }
    guard case .notFound = outcome else { return unexpected(outcome) }
  }

  @Test(
    """
    GEN-45 GEN-46 GEN-47 GEN-49 RAM-37 RAM-38 RAM-39 RAM-41 TIM-10 TIM-11 TIM-12 TIM-13 TIM-15 \
    a list is fresh until it is exactly seven days old
    """, arguments: Feed.all, ages)
  func freshness(feed: Feed, age: (TimeInterval, isFresh: Bool)) async throws {
    let bench = try Bench(feed)
    try bench.save(2, 1, 2, age: age.0)

    #expect(try await bench.handles.cached(nil) == (age.isFresh ? bench.items(2, 1, 2) : []))
  }

  @Test("GEN-48 RAM-40 an empty list in the cache is a hit", arguments: Feed.all)
  func emptyListIsAHit(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save()

    let loaded = try await bench.handles.load(.cacheOnly, nil)

    #expect(loaded.items == [] && loaded.fromCache)
    #expect(try await bench.handles.cached(nil) == [])
  }

  @Test(
    "GEN-50 RAM-42 whatever the cache holds, a look leaves it as it is", arguments: Feed.all)
  func lookChangesNothing(feed: Feed) async throws {
    for age in [nil, 0, 7 * day, 8 * day] as [TimeInterval?] {
      let bench = try Bench(feed)
      if let age { try bench.save(1, age: age) }
      let before = try bench.handles.lookup()

      #expect(try await bench.messages { try await bench.handles.cached(nil) } == [.retrieve])
      #expect(try bench.handles.lookup() == before)
    }
    let bench = try Bench(feed)
    try bench.save(1)
    try bench.damageRecord()

    let messages = await bench.messages { try? await bench.handles.cached(nil) }

    #expect(messages == [.retrieve])
    #expect(throws: StoreError.self) { try bench.handles.lookup() }
  }

  @Test("GEN-51 RAM-43 the clock is read once, if something was found", arguments: Feed.all)
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
    "RAM-32 TIM-14 a maximum age given with the call decides", arguments: [Feed.characters],
    [(MaxAge.seconds(60), 60.0), (.days(30), 30 * day), (.unlimited, .infinity)])
  func maximumAgeOfTheCall(feed: Feed, limit: (MaxAge, seconds: Double)) async throws {
    let bench = try Bench(feed)
    for age in [limit.seconds - 1, limit.seconds, 400 * day] where age.isFinite {
      try bench.save(1, age: age)

      let expected = age < limit.seconds ? bench.items(1) : []
      #expect(try await bench.handles.cached(limit.0) == expected)
    }
  }

  @Test("RAM-32 a call can only shorten what the genres' lifetime keeps")
  func callOnlyShortens() async throws {
    let bench = try Bench(.genres)
    try bench.save(1, age: 60)

    #expect(try await bench.handles.cached(.seconds(61)) == bench.items(1))
    #expect(try await bench.handles.cached(.seconds(60)) == [])
    try bench.save(1, age: 7 * day)
    #expect(try await bench.handles.cached(.unlimited) == [])
  }
}
