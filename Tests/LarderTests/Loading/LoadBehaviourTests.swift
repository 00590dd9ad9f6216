import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// The behaviours that users of caches with loaders expect.
@Suite(.timeLimit(.minutes(10))) struct LoadBehaviourTests {
  @Test("Many callers of a missing key share one load.", arguments: StoreKind.allCases)
  func stampede(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    try await withThrowingTaskGroup { group in
      for _ in 0..<10_000 {
        group.addTask { try await numbers.value(for: "a", load: source.load) }
      }
      await eventually("all callers have joined") { fixture.loads().joins == 9_999 }
      source.reply(7)
      for try await value in group { #expect(value == 7) }
    }
    #expect(source.begun == 1)
    #expect(try numbers.value(for: "a") == 7)
    #expect(fixture.loads().loads == 1)
  }

  @Test("Synchronous reads neither start a load nor wait for one.")
  func synchronousReads() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    async let value = numbers.value(for: "a", load: source.load)
    await source.begun(1)
    for _ in 0..<100 {
      #expect(try numbers.value(for: "a") == nil)
      #expect(try numbers.lookup(for: "b").kind == "missing")
    }
    source.reply(1)
    #expect(try await value == 1)
    #expect(source.begun == 1)
  }

  @Test("After a failure the stale entry is returned, and the source is left alone for a while.")
  func failSafe() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.staleIfError = .seconds(500)
      $0.retryThrottle = .seconds(30)
    }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(100))
    let source = Source([.failure(.init(number: 1))])
    for _ in 0..<3 {
      let entry = try #require(try await numbers.entry(for: "a", load: source.load))
      #expect(entry.value == 1 && entry.isStale && !entry.isRefreshing && entry.isSaved)
      #expect(entry.loadFailure as? Source.Failure == .init(number: 1))
      #expect(entry.age == .seconds(100) && entry.origin == .disk)
    }
    #expect(source.begun == 1)
    fixture.clock.advance(by: .seconds(30))
    source.reply(2)
    #expect(try await numbers.value(for: "a", load: source.load) == 2)
    let loads = fixture.loads()
    #expect(loads.loads == 2 && loads.failures == 1 && loads.throttled == 2)
    #expect(loads.staleServed == 3)
  }

  @Test("A stale entry is not returned after an error that comes too late for it.")
  func failTooLate() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleIfError = .seconds(10) }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(110))
    let source = Source([.failure(.init()), .failure(.init())])
    #expect(try await numbers.value(for: "a", load: source.load) == 1)
    fixture.clock.advance(by: .seconds(0.5))
    await #expect(throws: Source.Failure()) {
      try await numbers.value(for: "a", load: source.load)
    }
  }

  @Test("After the soft timeout the stale entry is returned, and the load goes on.")
  func softTimeout() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.softTimeout = .seconds(3) }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(100))
    let source = Source()
    async let entry = numbers.entry(for: "a", load: source.load)
    await source.begun(1)
    #expect(await fixture.timer.fire(.seconds(3)) == 1)
    let stale = try #require(try await entry)
    #expect(stale.value == 1 && stale.isStale && stale.isRefreshing)
    source.reply(2)
    try await eventually("the load is saved") { try numbers.value(for: "a") == 2 }
    #expect(source.state.read { $0.cancelled } == 0)
  }

  @Test("Without a stale entry the soft timeout has no effect; the hard one throws.")
  func hardTimeout() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.softTimeout = .seconds(3)
      $0.hardTimeout = .seconds(9)
    }
    let source = Source()
    let task = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    // Two of the caller, which may start them after the load has begun, and one of the load.
    await fixture.timer.wait(untilRunning: 3)
    #expect(await fixture.timer.fire(.seconds(3)) == 1)
    #expect(await fixture.timer.fire(.seconds(9)) == 2)
    await #expect(throws: LoadTimeout.self) { try await task.value }
    await source.state.wait { $0.ended == 1 }
    #expect(source.state.read { $0.cancelled } == 1, "the load of the only caller is cancelled")
    #expect(fixture.timer.running == [])
  }

  @Test("A stale entry is returned at once, and refreshed by the first caller.")
  func staleWhileRevalidate() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleWhileRevalidate = true }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(150))
    let source = Source()
    for _ in 0..<5 {
      let entry = try #require(try await numbers.entry(for: "a", load: source.load))
      #expect(entry.value == 1 && entry.isStale && entry.isRefreshing && entry.loadFailure == nil)
    }
    source.reply(2)
    try await eventually("the refresh is saved") { try numbers.value(for: "a") == 2 }
    #expect(source.begun == 1)
    #expect(fixture.loads().refreshes == 1)
  }

  @Test("A fresh entry is refreshed shortly before it goes stale.")
  func refreshAhead() async throws {
    let fixture = try LoadFixture(chance: 0)
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.refreshAhead = 0.2 }
    try numbers.save(1, for: "a")
    let source = Source()
    fixture.clock.advance(by: .seconds(79))
    let early = try #require(try await numbers.entry(for: "a", load: source.load))
    #expect(!early.isRefreshing)
    fixture.clock.advance(by: .seconds(20))
    let late = try #require(try await numbers.entry(for: "a", load: source.load))
    #expect(late.value == 1 && late.isRefreshing && !late.isStale)
    source.reply(2)
    try await eventually("the refresh is saved") { try numbers.value(for: "a") == 2 }
    #expect(source.begun == 1)
  }

  @Test("Of several keys, the fresh ones in memory that will soon be stale are refreshed together.")
  func refreshAheadOfSeveral() async throws {
    let fixture = try LoadFixture(chance: 0)
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.refreshAhead = 0.4 }
    for key in ["a", "b"] { try numbers.save(1, for: key) }
    fixture.clock.advance(by: .seconds(85))
    try numbers.save(1, for: "new")
    let keys = ["a", "new", "b", "missing"]
    #expect(try numbers.values(for: keys) == [1, 1, 1, nil])
    let asked = Watched<[[String]]>([])
    let values = try await numbers.values(for: keys) { keys in
      asked.change { $0.append(keys) }
      return keys.map { _ in .value(2) }
    }
    #expect(values == [1, 1, 1, 2])
    try await eventually("the refresh is saved") {
      try numbers.values(for: keys) == [2, 1, 2, 2]
    }
    #expect(Set(asked.read { $0 }) == [["a", "b"], ["missing"]])
  }

  @Test("A removed range ends the memory that its keys are absent, and no other one.")
  func negativeAndRange() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.absentFor = .seconds(60) }
    for key in ["a", "b", "z"] {
      #expect(try await numbers.value(for: key) { _ in .absent } == nil)
    }
    try numbers.remove(in: .upTo("b"))
    try fixture.store.invalidate(tag: "t")
    var values: [Int?] = []
    for key in ["a", "b", "z"] {
      values.append(try await numbers.value(for: key) { _ in .value(1) })
    }
    #expect(values == [1, nil, nil])
  }

  @Test("A refresh that has failed is not tried again before its throttle is over.")
  func throttledRefresh() async throws {
    let fixture = try LoadFixture(chance: 0)
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.refreshAhead = 0.4
      $0.retryThrottle = .seconds(10)
    }
    try numbers.save(1, for: "a")
    #expect(try numbers.value(for: "a") == 1)
    fixture.clock.advance(by: .seconds(85))
    let source = Source()
    let read = { try #require(try await numbers.entry(for: "a", load: source.load)) }
    #expect(try await read().isRefreshing)
    await source.begun(1)
    source.reply([.failure(.init())])
    await eventually("the load has failed") { fixture.store.context.loads.isEmpty }
    for _ in 0..<5 {
      let entry = try await read()
      #expect(entry.value == 1 && entry.origin == .memory && !entry.isRefreshing)
    }
    #expect(fixture.loads().loads == 1)
    fixture.clock.advance(by: .seconds(10))
    #expect(try await read().isRefreshing)
    source.reply(2)
    try await eventually("the refresh is saved") { try numbers.value(for: "a") == 2 }
  }

  @Test("Entries that were saved together are not all refreshed together.")
  func jitter() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.refreshAhead = 0.4 }
    for index in 0..<100 { try numbers.save(index, for: "\(index)") }
    var due: [Int] = []
    for age in [59, 65, 70, 75, 80] {
      fixture.clock.set(
        Date(timeIntervalSinceReferenceDate: 788_918_400).addingTimeInterval(Double(age)))
      var count = 0
      for index in 0..<100 {
        let entry = try #require(try numbers.entry(for: "\(index)"))
        if numbers.core.loads.isDue(entry, numbers.core.loading) { count += 1 }
      }
      due.append(count)
    }
    #expect(due[0] == 0 && due[4] == 100)
    #expect((15...35).contains(due[1]) && (40...60).contains(due[2]), "\(due)")
  }

  @Test("Repetitions wait for a random time, up to a limit that doubles.")
  func backoff() async throws {
    let fixture = try LoadFixture(chance: 0.5)
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.retries = Loading.Retries(extra: 4, first: .seconds(1), upTo: .seconds(3))
    }
    let source = Source(Array(repeating: .failure(.init()), count: 4) + [.success(.value(5))])
    async let value = numbers.value(for: "a", load: source.load)
    for delay in [0.5, 1, 1.5, 1.5] {
      #expect(await fixture.timer.fire(.seconds(delay)) == 1)
    }
    #expect(try await value == 5)
    #expect(fixture.loads().failures == 4)
  }

  @Test("A key without a value is remembered for a while, in memory only.")
  func negative() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.absentFor = .seconds(60) }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(100))
    let source = Source([.success(.absent), .success(.absent)])
    for _ in 0..<3 { #expect(try await numbers.value(for: "a", load: source.load) == nil) }
    #expect(source.begun == 1)
    #expect(try numbers.lookup(for: "a").kind == "missing", "the entry that was there is removed")
    fixture.clock.advance(by: .seconds(60))
    #expect(try await numbers.value(for: "a", load: source.load) == nil)
    #expect(source.begun == 2)
    // A change ends it; here by another call, and back.
    try numbers.save(3, for: "a")
    #expect(try await numbers.value(for: "a", load: source.load) == 3)
    try numbers.remove("a")
    source.reply(4)
    #expect(try await numbers.value(for: "a", load: source.load) == 4)
    #expect(fixture.store.context.loads.isEmpty)
  }

  @Test("A closure that always has a value is called although the key is known to be absent.")
  func negativeAndSimple() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.absentFor = .seconds(60) }
    #expect(try await numbers.value(for: "a") { _ in .absent } == nil)
    let value: Int = try await numbers.value(for: "a") { 5 }
    #expect(value == 5)
  }

  @Test("When the first caller is cancelled, the others still get the value.")
  func cancelledFirst() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let first = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    let second = Task { try await numbers.value(for: "a", load: source.load) }
    await eventually("the second caller has joined") { fixture.loads().joins == 1 }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    source.reply(1)
    #expect(try await second.value == 1)
    #expect(source.state.read { $0.cancelled } == 0 && source.begun == 1)
  }

  @Test("The load is cancelled when its last caller leaves, and a later one starts another.")
  func cancelledLast() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let tasks = (0..<2).map { _ in Task { try await numbers.value(for: "a", load: source.load) } }
    await source.begun(1)
    await eventually("the second caller has joined") { fixture.loads().joins == 1 }
    for task in tasks { task.cancel() }
    for task in tasks {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    await source.state.wait { $0.ended == 1 }
    #expect(source.state.read { $0.cancelled } == 1)
    source.reply(2)
    #expect(try await numbers.value(for: "a", load: source.load) == 2)
  }

  @Test("All callers get the error of the closure as it is, and it is not kept.")
  func sharedFailure() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let tasks = (0..<5).map { _ in Task { try await numbers.value(for: "a", load: source.load) } }
    await eventually("all have joined") { fixture.loads().joins == 4 }
    source.reply([.failure(.init(number: 3))])
    for task in tasks {
      await #expect(throws: Source.Failure(number: 3)) { try await task.value }
    }
    source.reply(1)
    #expect(try await numbers.value(for: "a", load: source.load) == 1)
    #expect(source.begun == 2)
  }
}
