import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Waiting until a store has nothing to do in the background.
@Suite(.timeLimit(.minutes(10))) struct IdleTests {
  /// Starts to wait, and returns once the wait has begun.
  private func wait(for store: Store) async -> Task<Void, any Error> {
    let waiting = store.activity.waiting
    let wait = Task { try await store.waitUntilIdle() }
    await eventually("the wait has begun") { store.activity.waiting == waiting + 1 }
    return wait
  }

  @Test("A store without background work is idle.", arguments: StoreKind.allCases)
  func nothing(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self)
    try numbers.save(1, for: "a")
    try await fixture.store.waitUntilIdle()
    #expect(try numbers.value(for: "a") == 1)
  }

  @Test(
    "The wait ends after a stale entry was refreshed in the background and saved.",
    arguments: StoreKind.allCases)
  func staleWhileRevalidate(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleWhileRevalidate = true }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(100))
    let source = Source()
    #expect(try await numbers.value(for: "a", load: source.load) == 1)
    let waits = [await wait(for: fixture.store), await wait(for: fixture.store)]
    source.reply(2)
    for wait in waits { try await wait.value }
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test(
    "The wait ends after a fresh entry was refreshed ahead of time.",
    arguments: StoreKind.allCases)
  func refreshAhead(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.refreshAhead = 0.5 }
    try numbers.save(1, for: "a")
    #expect(try numbers.value(for: "a") == 1)
    fixture.clock.advance(by: .seconds(99))
    let source = Source()
    let entry = try await numbers.entry(for: "a", load: source.load)
    #expect(entry?.value == 1 && entry?.isRefreshing == true)
    let wait = await wait(for: fixture.store)
    source.reply(2)
    try await wait.value
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("The wait ends after a load that continued after a soft timeout.")
  func softTimeout() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.softTimeout = .seconds(3) }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(100))
    let source = Source()
    async let value = numbers.value(for: "a", load: source.load)
    await source.begun(1)
    #expect(await fixture.timer.fire(.seconds(3)) == 1)
    #expect(try await value == 1)
    let wait = await wait(for: fixture.store)
    source.reply(2)
    try await wait.value
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("The wait ends after the repetition of a load that failed.")
  func repetition() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.staleWhileRevalidate = true
      $0.retries = .init(extra: 1, first: .seconds(4))
    }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(100))
    let source = Source([.failure(.init())])
    #expect(try await numbers.value(for: "a", load: source.load) == 1)
    await fixture.timer.wait(untilRunning: 1)
    let wait = await wait(for: fixture.store)
    source.reply(2)
    #expect(await fixture.timer.fire(.seconds(2)) == 1)
    try await wait.value
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("The wait ends after loads that wait for a free place, in all caches of a store.")
  func queued() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let first = try fixture.numbers("first") { $0.concurrent = 1 }
    let second = try fixture.numbers("second")
    let source = Source()
    let keys = ["a", "b", "c"]
    let calls = keys.map { key in Task { try await first.value(for: key, load: source.load) } }
    await eventually("all three have read") {
      fixture.store.statistics.caches["first"]?.reads.missing == 3
    }
    let other = Task { try await second.value(for: "a", load: source.load) }
    await source.begun(2)
    let wait = await wait(for: fixture.store)
    source.reply([1, 2, 3, 4].map { .success(.value($0)) })
    try await wait.value
    #expect(source.state.read { $0.ended } == 4)
    #expect(try first.values(for: keys).compactMap { $0 }.count == 3)
    for call in calls + [other] { _ = try await call.value }
  }

  @Test("The wait ends after the loads that a load awaits, and those that it has begun.")
  func nested() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleWhileRevalidate = true }
    try numbers.save(1, for: "b")
    fixture.clock.advance(by: .seconds(100))
    let source = Source()
    let value = try await numbers.value(for: "a") {
      try await numbers.value(for: "b", load: source.load) ?? 0
    }
    #expect(value == 1)
    let wait = await wait(for: fixture.store)
    source.reply(2)
    try await wait.value
    #expect(try numbers.value(for: "b") == 2)
  }

  @Test("A store is idle after each outcome of a load.")
  func outcomes() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.absentFor = .seconds(60) }
    let replies: [Result<LoadReply<Int>, Source.Failure>] = [
      .success(.value(1)), .success(.unsaved(1)), .success(.unchanged), .success(.absent),
      .failure(.init()),
    ]
    for (index, reply) in replies.enumerated() {
      let source = Source([reply])
      do {
        _ = try await numbers.value(for: "\(index)", load: source.load)
      } catch {
        #expect(index == 2 || index == 4)
      }
      try await fixture.store.waitUntilIdle()
    }
    _ = try await numbers.values(for: ["x", "x", "y"]) { keys in keys.map { _ in .value(1) } }
    try await fixture.store.waitUntilIdle()
    await #expect(throws: StoreError.self) { try await numbers.values(for: ["z"]) { _ in [] } }
    try await fixture.store.waitUntilIdle()
  }

  @Test("A load whose caller was cancelled counts until it ends.")
  func cancelledCaller() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let (begun, source) = (Flag(), Watched(false))
    let call = Task {
      try await numbers.value(for: "a") {
        begun.raise()
        // It does not end when it is cancelled.
        await Task { await source.wait { $0 } }.value
        return 1
      }
    }
    await eventually("the load has begun") { begun.isRaised }
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    let wait = await wait(for: fixture.store)
    source.change { $0 = true }
    try await wait.value
    #expect(try numbers.value(for: "a") == nil)
  }
}

// MARK: - Reads that restart lifetimes

extension IdleTests {
  @Test("The wait ends after the writes that reads of a sliding cache have queued.")
  func sliding() async throws {
    let (clock, faults) = (ManualClock(), StoreFaults())
    var options = Store.Options()
    options.clock = clock
    let store = Store.inMemory(options: options, faults: faults)
    let numbers = try store.cache(
      "n", of: Int.self, lifetime: .seconds(160), expiry: .sliding)
    try numbers.save(1, for: "a")
    clock.advance(by: .seconds(20))
    faults.holdWrites()
    #expect(try numbers.value(for: "a") == 1)
    let wait = await wait(for: store)
    try await faults.waitForHeldWrites(1)
    #expect(store.activity.waiting == 1)
    faults.releaseWrites()
    try await wait.value
    #expect(try numbers.entry(for: "a")?.age == .zero)
  }

  @Test("After the wait of any reader, the lifetime that its read restarts is restarted.")
  func slidingReaders() async throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let store = fixture.store
    let numbers = try store.cache(
      "n", of: Int.self, lifetime: .seconds(160), expiry: .sliding)
    let keys = (0..<4).map { "\($0)" }
    for key in keys { try numbers.save(1, for: key) }
    for _ in 0..<300 {
      fixture.clock.advance(by: .seconds(20))
      try await withThrowingTaskGroup { group in
        for key in keys {
          group.addTask {
            #expect(try numbers.value(for: key) == 1)
            try await store.waitUntilIdle()
            #expect(try numbers.entry(for: key)?.age == .zero)
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

// MARK: - The end of a wait

extension IdleTests {
  @Test("A cancelled wait throws, and others continue.")
  func cancelled() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let call = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    let (first, second) = (await wait(for: fixture.store), await wait(for: fixture.store))
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(fixture.store.activity.waiting == 1)
    source.reply(1)
    try await second.value
    #expect(try await call.value == 1)
  }

  @Test("A wait in a task that is cancelled already throws at once.")
  func cancelledBefore() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let (store, source) = (fixture.store, Source())
    let call = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    let wait = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.waitUntilIdle()
    }
    await #expect(throws: CancellationError.self) { try await wait.value }
    source.reply(1)
    _ = try await call.value
  }

  @Test("Closing the store ends waits, also while a load does not end.")
  func close() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let (begun, source) = (Flag(), Watched(false))
    let call = Task {
      try await numbers.value(for: "a") {
        begun.raise()
        await Task { await source.wait { $0 } }.value
        return 1
      }
    }
    await eventually("the load has begun") { begun.isRaised }
    let wait = await wait(for: fixture.store)
    try fixture.store.close()
    for wait in [wait, Task { [store = fixture.store] in try await store.waitUntilIdle() }] {
      await #expect { try await wait.value } throws: {
        if case StoreError.closed = $0 { true } else { false }
      }
    }
    source.change { $0 = true }
    await #expect(throws: StoreError.self) { try await call.value }
  }

  @Test("Waits end while loads begin and end all the time.")
  func race() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let store = fixture.store
    let numbers = try fixture.numbers { $0.staleWhileRevalidate = true }
    let loads = Watched(0)
    try await withThrowingTaskGroup { group in
      for worker in 0..<8 {
        group.addTask {
          for round in 0..<200 {
            _ = try await numbers.refresh("\((worker + round) % 5)") { _ in
              loads.change { $0 += 1 }
              await Task.yield()
              loads.change { $0 -= 1 }
              return .value(round)
            }
            if round.isMultiple(of: 8) { try await store.waitUntilIdle() }
          }
        }
      }
      try await group.waitForAll()
    }
    try await store.waitUntilIdle()
    #expect(loads.read { $0 } == 0 && store.activity.waiting == 0)
  }
}
