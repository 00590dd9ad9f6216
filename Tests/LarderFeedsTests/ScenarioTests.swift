import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// Genres come from the cache for seven days, and then from the server.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct GenresScenarioTests {
  private let online = ScriptedClient(last: .reply(200, Feed.genres.payload(8, 9)))
  private let offline = ScriptedClient()

  @Test(
    "Without a fresh list, genres come from the server and are saved first.",
    arguments: [nil, 7 * day, 8 * day], StoreKind.allCases)
  func missIsLoaded(age: TimeInterval?, kind: StoreKind) async throws {
    try await withBench(.genres, on: kind, online) { bench in
      if let age { try bench.save(1, age: age) }

      let messages = try await bench.messages {
        let loaded = try await bench.handles.load(nil, nil)
        #expect(loaded.items == bench.items(8, 9) && !loaded.fromCache && loaded.isSaved)
        // Saved before it is delivered.
        #expect(bench.engine.messages.last == .replace(1))
      }

      #expect(messages == [.retrieve, .replace(1)])
      bench.clock.advance(by: .seconds(7 * day - 1))
      let again = try await bench.handles.load(nil, nil)
      #expect(
        again.items == bench.items(8, 9) && again.fromCache && again.age == .seconds(7 * day - 1))
      #expect(bench.client.urls.count == 1)
    }
  }

  @Test(
    "A fresh list is delivered without a request.", arguments: [true, false],
    StoreKind.allCases)
  func hitNeedsNoRequest(isOnline: Bool, kind: StoreKind) async throws {
    try await withBench(.genres, on: kind, isOnline ? online : offline) { bench in
      try bench.save(1, 2, age: 7 * day - 1)

      let messages = try await bench.messages {
        let loaded = try await bench.handles.load(nil, nil)
        #expect(loaded.items == bench.items(1, 2) && loaded.fromCache && loaded.isSaved)
      }

      #expect(messages == [.retrieve])
      #expect(bench.client.urls == [])
    }
  }

  @Test(
    "Offline and without a fresh list there is an error, and nothing is deleted.",
    arguments: [nil, 7 * day, 8 * day], StoreKind.allCases)
  func offlineMiss(age: TimeInterval?, kind: StoreKind) async throws {
    try await withBench(.genres, on: kind, offline) { bench in
      if let age { try bench.save(1, age: age) }

      let messages = await bench.messages {
        let error = await feedError { try await bench.handles.load(nil, nil) }
        #expect(error?.reason == .connectivity)
      }

      #expect(messages == [.retrieve])
      #expect(try bench.handles.lookup() == (age == nil ? "missing" : "expired"))
    }
  }

  @Test("A cache that cannot be read is skipped.", arguments: [true, false])
  func unreadableOnline(isDamaged: Bool) async throws {
    let bench = try Bench(.genres, online)
    try bench.save(1)
    if isDamaged { try bench.damageRecord() } else { bench.engine.failReads(.io("unreadable")) }

    #expect(try await bench.handles.load(nil, nil).items == bench.items(8, 9))
  }

  @Test("Offline and with an unreadable cache, the server's error is reported.")
  func unreadableOffline() async throws {
    let bench = try Bench(.genres, offline)
    bench.engine.failReads(.io("unreadable"))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .connectivity)
  }

  @Test("A loaded list is delivered even if it could not be saved.")
  func failedSave() async throws {
    let bench = try Bench(.genres, online)
    bench.engine.failWrites(.diskFull)

    let loaded = try await bench.handles.load(nil, nil)

    #expect(loaded.items == bench.items(8, 9) && !loaded.isSaved)
    guard case .diskFull = loaded.saveFailure else {
      return unexpected(loaded.saveFailure)
    }
  }

  @Test("Invalid data in all attempts is an error, and nothing is saved.")
  func invalidData() async throws {
    let bench = try Bench(.genres, ScriptedClient(last: .reply(200, "no")))
    try bench.save(1, age: 8 * day)

    let messages = await bench.messages {
      let error = await feedError { try await bench.handles.load(nil, nil) }
      #expect(error?.reason == .invalidData)
    }

    #expect(messages == [.retrieve])
    #expect(try bench.handles.lookup() == "expired")
  }

  @Test("A fresh empty list is delivered.")
  func emptyList() async throws {
    let bench = try Bench(.genres, online)
    try bench.save()

    #expect(try await bench.handles.load(nil, nil).items == [])
    #expect(bench.client.urls == [])
  }
}

/// Server-first feeds deliver the last saved list if the server fails.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct RemoteFirstScenarioTests {
  private let offline = ScriptedClient()
  private func online(_ feed: Feed) -> ScriptedClient {
    ScriptedClient(last: .reply(200, feed.payload(8, 9)))
  }

  @Test(
    "The list comes from the server and replaces the saved one, which is not read.",
    arguments: Feed.remoteFirst, StoreKind.allCases)
  func remoteFirst(feed: Feed, kind: StoreKind) async throws {
    try await withBench(feed, on: kind, online(feed)) { bench in
      try bench.save(1)

      let messages = try await bench.messages {
        let loaded = try await bench.handles.load(nil, nil)
        #expect(loaded.items == bench.items(8, 9) && !loaded.fromCache && loaded.isSaved)
      }

      #expect(messages == [.replace(1)])
      let saved = try await bench.handles.load(.cacheOnly, nil)
      #expect(saved.items == bench.items(8, 9) && saved.savedAt == bench.clock.now())
    }
  }

  @Test(
    "If the server fails, the saved list is delivered as it is.", arguments: Feed.remoteFirst,
    StoreKind.allCases)
  func fallback(feed: Feed, kind: StoreKind) async throws {
    let invalid = ScriptedClient(last: .reply(200, "no"))
    for (client, failure) in [(offline, RemoteFailure.Kind.connectivity), (invalid, .invalidData)] {
      try await withBench(feed, on: kind, client) { bench in
        try bench.save(3, 1, 2, age: 7 * day - 1)

        let messages = try await bench.messages {
          let loaded = try await bench.handles.load(nil, feed.sevenDays)
          #expect(loaded.items == bench.items(3, 1, 2) && loaded.fromCache)
          #expect(loaded.age == .seconds(7 * day - 1))
          #expect(loaded.failure == failure)
        }

        #expect(messages == [.retrieve])
      }
    }
  }

  @Test("Without a maximum age, a saved feed of any age is delivered.")
  func anyAge() async throws {
    for client in [offline, ScriptedClient(last: .reply(404, ""))] {
      let bench = try Bench(.essentialFeed, client)
      try bench.save(1, age: 1000 * day)

      let loaded = try await bench.handles.load(nil, nil)

      #expect(loaded.items == bench.items(1) && loaded.age == .seconds(1000 * day))
    }
  }

  @Test(
    "With no usable list saved, the server's failure is the error.", arguments: Feed.remoteFirst,
    [nil, 7 * day, 8 * day])
  func nothingUsable(feed: Feed, age: TimeInterval?) async throws {
    let invalid = ScriptedClient(last: .reply(500, ""))
    for (client, failure) in [(offline, RemoteFailure.Kind.connectivity), (invalid, .invalidData)] {
      let bench = try Bench(feed, client)
      if let age { try bench.save(1, age: age) }

      let messages = await bench.messages {
        let error = await feedError { try await bench.handles.load(nil, feed.sevenDays) }
        guard case .remote(let found, cache: nil) = error, found.kind == failure else {
          return unexpected(error)
        }
      }

      #expect(messages == [.retrieve])
      let left = feed.isKept ? "fresh" : "expired"
      #expect(try bench.handles.lookup() == (age == nil ? "missing" : left))
    }
  }

  @Test(
    "If both sources fail, the server's failure carries the cache's.", arguments: Feed.remoteFirst)
  func bothFail(feed: Feed) async throws {
    let bench = try Bench(feed, offline)
    bench.engine.failReads(.io("unreadable"))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    guard case .remote(let failure, cache: .io("unreadable")) = error, failure.kind == .connectivity
    else {
      return unexpected(error)
    }
  }

  @Test(
    "A loaded list is delivered even if it could not be saved.",
    arguments: Feed.remoteFirst)
  func failedSave(feed: Feed) async throws {
    let bench = try Bench(feed, online(feed))
    try bench.save(1)
    bench.engine.failWrites(.io("read-only"))

    let loaded = try await bench.handles.load(nil, nil)

    #expect(loaded.items == bench.items(8, 9) && !loaded.isSaved && loaded.saveFailure != nil)
    #expect(try await bench.handles.cached(nil) == bench.items(1))
  }
}

/// The source orders that no domain uses by default work, too.
@Suite(.timeLimit(.minutes(30))) struct OrderTests {
  @Test("Server only: nothing is read, and nothing is saved unless the policy says so.")
  func remoteOnly() async throws {
    let client = ScriptedClient(last: .reply(200, Feed.genres.payload(1)))
    let bench = try Bench(.genres, client)
    let genres = try GenresLoader.genres(from: Feed.base, client: client, store: bench.store)
    let remoteOnly = GenresLoader(
      .json([Genre].self, at: { Feed.base }) { $0 }, client: ScriptedClient(.reply(200, "[]")),
      cache: genres.cache, key: { "all" }, policy: LoadPolicy(.remoteOnly))

    let unsaved = try await remoteOnly.load()
    #expect(unsaved.value == [] && !unsaved.isSaved && unsaved.saveFailure == nil)
    #expect(bench.engine.messages == [])

    var refresh = genres
    refresh.policy.order = .remoteOnly
    #expect(try await refresh.load().isSaved)
    #expect(bench.engine.messages == [.replace(1)])
  }

  @Test(
    "A stale entry is never delivered: it counts as missing in every order.",
    arguments: [SourceOrder.remoteOnly, .cacheOnly, .remoteThenCache, .cacheThenRemote],
    [60, 119] as [TimeInterval])
  func stale(order: SourceOrder, age: TimeInterval) async throws {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let cache = try Store.inMemory(options: options).cache(
      "numbers", of: [Int].self,
      lifetime: .fresh(for: .seconds(60), thenStaleFor: .seconds(60)))
    let client = ScriptedClient(.fail(URLError(.timedOut)), .reply(200, "[2]"))
    let loader = Loader<Void, String, [Int]>(
      .json([Int].self, at: { Feed.base }) { $0 }, client: client, cache: cache, key: { "all" },
      policy: LoadPolicy(order))
    try cache.save([1], for: "all")
    clock.advance(by: .seconds(age))
    guard case .stale = try cache.lookup(for: "all") else { return unexpected(nil) }

    #expect(try await loader.cached() == [])
    let offline = await feedError { try await loader.load() }
    guard order != .cacheOnly else {
      guard case .notFound = offline else { return unexpected(offline) }
      return
    }
    guard case .remote(let failure, cache: nil) = offline, failure.kind == .connectivity else {
      return unexpected(offline)
    }
    let online = try await loader.load()
    #expect(online.value == [2] && online.origin == .loaded)
  }

  @Test("Cache only: no request is ever made.")
  func cacheOnly() async throws {
    let bench = try Bench(.characters, ScriptedClient(last: .reply(200, "")))
    try bench.save(1)

    #expect(try await bench.handles.load(.cacheOnly, nil).items == bench.items(1))
    _ = await feedError { try await bench.handles.load(.cacheOnly, .seconds(0)) }
    #expect(bench.client.urls == [])
  }
}
