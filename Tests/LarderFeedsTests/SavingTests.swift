import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Saving a list replaces the old one atomically, or leaves it.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct SavingTests {
  @Test("A save is one atomic replace, stamped with the current date.", arguments: Feed.all)
  func oneAtomicReplace(feed: Feed) async throws {
    let bench = try Bench(feed)
    let readings = bench.clock.readings

    let messages = try await bench.messages { try bench.handles.save([1, 2]) }

    #expect(messages == [.replace(1)])
    #expect(bench.clock.readings == readings + 1)
    let loaded = try await bench.handles.load(.cacheOnly, nil)
    #expect(loaded.items == bench.items(1, 2))
    #expect(loaded.savedAt == bench.clock.now() && loaded.age == .zero)
  }

  @Test("A failed replace is the save's error, and the old list stays.", arguments: Feed.all)
  func failedSave(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save(1)
    bench.engine.failWrites(.diskFull)

    let messages = await bench.messages {
      let error = #expect(throws: StoreError.self) { try bench.handles.save([2]) }
      guard case .diskFull = error else { return unexpected(error) }
    }

    #expect(messages == [.replace(1)])
    #expect(try await bench.handles.cached(nil) == bench.items(1))
  }

  @Test(
    "A save succeeds and replaces the old list; nothing is merged.", arguments: Feed.all,
    StoreKind.allCases)
  func replaced(feed: Feed, kind: StoreKind) async throws {
    try await withBench(feed, on: kind) { bench in
      try bench.save(1, 2, 3)
      try bench.save(4)

      #expect(try await bench.handles.cached(nil) == bench.items(4))
    }
  }

  @Test("An empty list is saved with its date.", arguments: Feed.all)
  func emptyList(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save(1)
    try bench.save()

    let loaded = try await bench.handles.load(.cacheOnly, nil)

    #expect(loaded.items == [] && loaded.savedAt == bench.clock.now())
  }

  @Test("Another store on the same directory finds the list.", arguments: Feed.all)
  func anotherInstance(feed: Feed) async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"), directoryHint: .isDirectory)
    var options = Store.Options()
    let clock = ManualClock()
    options.clock = clock

    let first = try Store(at: place, options: options)
    try feed.open(ScriptedClient(), first).save([1, 2])
    try first.close()
    clock.advance(by: .seconds(6 * day))
    let second = try Store(at: place, options: options)
    let handles = try feed.open(ScriptedClient(), second)

    #expect(try await handles.cached(nil) == [1, 2].map(handles.item))
    try second.close()
  }
}

/// Validating deletes expired and unreadable lists, and nothing else.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct ValidationTests {
  private static let sevenDays = [Feed.genres, .imageFeed]

  @Test(
    "An unreadable list is deleted completely, and the next one can be saved.",
    arguments: sevenDays,
    RecordDamage.allCases)
  func unreadableIsDeleted(feed: Feed, damage: RecordDamage) async throws {
    for kind in StoreKind.allCases {
      let client = ScriptedClient(
        .fail(URLError(.notConnectedToInternet)), .reply(200, feed.payload(8, 9)))
      try await withBench(feed, on: kind, client) { bench in
        try bench.save(1)
        try bench.damageRecord(damage)
        let found = await #expect(throws: StoreError.self) { try await bench.handles.cached(nil) }
        #expect(damage.explains(found))

        let messages = try await bench.messages {
          let report = try bench.handles.validate(nil)
          #expect(report?.unreadable == 1 && report?.kept == 0)
        }

        #expect(messages == [.scan, .delete(1)])
        #expect(try bench.handles.lookup() == "missing")
        let offline = await feedError { try await bench.handles.load(nil, nil) }
        guard case .remote(let failure, cache: nil) = offline, failure.kind == .connectivity else {
          return unexpected(offline)
        }
        #expect(try await bench.handles.load(nil, nil).isSaved)
        #expect(try await bench.handles.cached(nil) == bench.items(8, 9))
      }
    }
  }

  @Test("A list of seven days is deleted.", arguments: sevenDays, StoreKind.allCases)
  func expiredIsDeleted(feed: Feed, kind: StoreKind) async throws {
    for age in [7 * day, 7 * day + 1] {
      try await withBench(feed, on: kind) { bench in
        try bench.save(1, age: age)

        let messages = try await bench.messages { try bench.handles.validate(nil) }

        #expect(messages == [.scan, .delete(1)])
        #expect(try bench.handles.lookup() == "missing")
      }
    }
  }

  @Test("A list one second younger is kept.", arguments: sevenDays)
  func freshIsKept(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save(1, age: 7 * day - 1)

    #expect(try await bench.messages { try bench.handles.validate(nil) } == [.scan])
    #expect(try bench.handles.lookup() == "fresh")
  }

  @Test("An empty cache is valid.", arguments: sevenDays)
  func emptyIsValid(feed: Feed) async throws {
    let bench = try Bench(feed)

    #expect(try await bench.messages { try bench.handles.validate(nil) } == [.scan])
  }

  @Test("A failed deletion is validate's error.", arguments: sevenDays, [false, true])
  func deletionFails(feed: Feed, damaged: Bool) throws {
    let bench = try Bench(feed)
    try bench.save(1, age: 7 * day)
    if damaged { try bench.damageRecord() }
    bench.engine.failWrites(.io("read-only"))

    let error = #expect(throws: StoreError.self) { try bench.handles.validate(nil) }

    guard case .io("read-only") = error else { return unexpected(error) }
  }

  @Test(
    "A list without a limit is deleted by validate(maxAge:), and never by a load.",
    arguments: [Feed.characters, .essentialFeed])
  func keptForEver(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save(1, age: 1000 * day)

    _ = await feedError { try await bench.handles.load(nil, .days(7)) }
    #expect(try bench.handles.lookup() == "fresh")
    try #expect(bench.handles.validate(nil)?.kept == 1)
    try #expect(bench.handles.validate(.days(1001))?.kept == 1)
    try #expect(bench.handles.validate(.days(1000))?.expired == 1)
    #expect(try bench.handles.lookup() == "missing")
  }
}
