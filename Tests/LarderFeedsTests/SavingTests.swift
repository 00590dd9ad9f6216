import Foundation
import Larder
import LarderEngine
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// What saving a list does, and what is left when it fails.
@Suite(.timeLimit(.minutes(1))) struct SavingTests {
  @Test("GEN-64 RAM-45 RAM-47 a save is one atomic replace, stamped now", arguments: Feed.all)
  func oneAtomicReplace(feed: Feed) async throws {
    let bench = try Bench(feed)
    let readings = bench.clock.readings

    let messages = try await bench.messages { try bench.handles.save([1, 2]) }

    #expect(messages == [.replace(1)])
    #expect(bench.clock.readings == readings + 1)
    let loaded = try await bench.handles.load(.cacheOnly, nil)
    #expect(loaded.items == bench.items(1, 2))
    #expect(loaded.savedAt == bench.clock.now() && loaded.age == 0)
  }

  @Test(
    "GEN-65 GEN-66 RAM-48 RAM-49 a replace that fails is the save's error, and the old list stays",
    arguments: Feed.all)
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
    "GEN-67 GEN-68 RAM-50 RAM-51 a save succeeds and replaces: nothing is merged",
    arguments: Feed.all, StoreKind.allCases)
  func replaced(feed: Feed, kind: StoreKind) async throws {
    try await withBench(feed, on: kind) { bench in
      try bench.save(1, 2, 3)
      try bench.save(4)

      #expect(try await bench.handles.cached(nil) == bench.items(4))
    }
  }

  @Test("GEN-69 RAM-52 an empty list is saved with its date", arguments: Feed.all)
  func emptyList(feed: Feed) async throws {
    let bench = try Bench(feed)
    try bench.save(1)
    try bench.save()

    let loaded = try await bench.handles.load(.cacheOnly, nil)

    #expect(loaded.items == [] && loaded.savedAt == bench.clock.now())
  }

  @Test("GEN-70 RAM-53 another store on the same directory finds the list", arguments: Feed.all)
  func anotherInstance(feed: Feed) async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"), directoryHint: .isDirectory)
    var options = Store.Options()
    let clock = ManualClock()
    options.clock = clock

    let first = try Store(at: place, options: options)
    try feed.open(ScriptedClient(), first).save([1, 2])
    try first.close()
    clock.advance(by: 6 * day)
    let second = try Store(at: place, options: options)
    let handles = try feed.open(ScriptedClient(), second)

    #expect(try await handles.cached(nil) == [1, 2].map(handles.item))
    try second.close()
  }
}

/// What validating deletes, and what it leaves.
@Suite(.timeLimit(.minutes(1))) struct ValidationTests {
  @Test("GEN-54 GEN-59 a list that cannot be read is deleted", arguments: StoreKind.allCases)
  func unreadableIsDeleted(kind: StoreKind) async throws {
    try await withBench(.genres, on: kind) { bench in
      try bench.save(1)
      try bench.damageRecord()

      let messages = try await bench.messages { try bench.handles.validate(nil) }

      #expect(messages == [.scan, .delete(1)])
      #expect(try bench.handles.lookup() == "missing")
    }
  }

  @Test(
    "GEN-55 GEN-56 GEN-59 a list of seven days is deleted", arguments: [7 * day, 7 * day + 1],
    StoreKind.allCases)
  func expiredIsDeleted(age: TimeInterval, kind: StoreKind) async throws {
    try await withBench(.genres, on: kind) { bench in
      try bench.save(1, age: age)

      let messages = try await bench.messages { try bench.handles.validate(nil) }

      #expect(messages == [.scan, .delete(1)])
      #expect(try bench.handles.lookup() == "missing")
    }
  }

  @Test("GEN-57 a list a second younger is kept")
  func freshIsKept() async throws {
    let bench = try Bench(.genres)
    try bench.save(1, age: 7 * day - 1)

    #expect(try await bench.messages { try bench.handles.validate(nil) } == [.scan])
    #expect(try bench.handles.lookup() == "fresh")
  }

  @Test("GEN-58 an empty cache is valid")
  func emptyIsValid() async throws {
    let bench = try Bench(.genres)

    #expect(try await bench.messages { try bench.handles.validate(nil) } == [.scan])
  }

  @Test("GEN-60 a deletion that fails is validate's error", arguments: [false, true])
  func deletionFails(damaged: Bool) throws {
    let bench = try Bench(.genres)
    try bench.save(1, age: 7 * day)
    if damaged { try bench.damageRecord() }
    bench.engine.failWrites(.io("read-only"))

    let error = #expect(throws: StoreError.self) { try bench.handles.validate(nil) }

    guard case .io("read-only") = error else { return unexpected(error) }
  }

  @Test("RAM-55 saved characters are deleted by validate(maxAge:), and never by a load")
  func charactersStay() async throws {
    let bench = try Bench(.characters)
    try bench.save(1, age: 1000 * day)

    _ = await feedError { try await bench.handles.load(nil, nil) }
    #expect(try bench.handles.lookup() == "fresh")
    try #expect(bench.handles.validate(nil)?.kept == 1)
    try #expect(bench.handles.validate(.days(1001))?.kept == 1)
    try #expect(bench.handles.validate(.days(1000))?.expired == 1)
    #expect(try bench.handles.lookup() == "missing")
  }
}
