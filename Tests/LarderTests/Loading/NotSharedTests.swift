import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Replies and errors for one caller alone, and sources that say when to ask again.
@Suite(.timeLimit(.minutes(10))) struct NotSharedTests {
  struct Refused: Error, Equatable { let caller: Int }

  /// Lets callers of one key wait for one load; then each is to have called its own closure.
  private func callers(
    _ count: Int, of numbers: Cache<String, Int>, in fixture: LoadFixture,
    _ reply: @escaping @Sendable (Int) throws -> LoadReply<Int>
  ) async -> [Result<Int?, any Error>] {
    let begun = Watched<[Int]>([])
    let mayEnd = Watched((first: false, others: false))
    return await withTaskGroup(of: (Int, Result<Int?, any Error>).self) { group in
      for caller in 0..<count {
        group.addTask {
          do {
            let value = try await numbers.value(for: "a") { _ in
              let isFirst = begun.change { begun in
                begun.append(caller)
                return begun.count == 1
              }
              await mayEnd.wait { isFirst ? $0.first : $0.others }
              return try reply(caller)
            }
            return (caller, .success(value))
          } catch {
            return (caller, .failure(error))
          }
        }
      }
      await eventually("all have joined") { fixture.loads().joins == count - 1 }
      await begun.wait { $0.count == 1 }
      mayEnd.change { $0.first = true }
      // The others load at the same time.
      await begun.wait { $0.count == count }
      mayEnd.change { $0.others = true }
      #expect(begun.read { Set($0).count } == count, "each closure is called once")
      var results: [Int: Result<Int?, any Error>] = [:]
      for await (caller, result) in group { results[caller] = result }
      return (0..<count).compactMap { results[$0] }
    }
  }

  @Test("Each of twenty callers gets its own reply, and nothing is saved.")
  func replies() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let results = await callers(20, of: numbers, in: fixture) { .notShared($0) }
    #expect(try results.map { try $0.get() } == (0..<20).map { $0 })
    #expect(try numbers.lookup(for: "a").kind == "missing")
    #expect(fixture.store.context.loads.isEmpty)
  }

  @Test("Each of twenty callers gets its own error, and none is remembered.")
  func errors() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.retries = Loading.Retries(extra: 5, first: .zero)
      $0.retryThrottle = .seconds(60)
    }
    let results = await callers(20, of: numbers, in: fixture) {
      throw NotShared(Refused(caller: $0))
    }
    for (caller, result) in results.enumerated() {
      #expect(throws: Refused(caller: caller)) { try result.get() }
    }
    #expect(fixture.loads().loads == 20 && fixture.loads().throttled == 0)
  }

  @Test("Among callers that load for themselves, one whose reply may be shared saves it.")
  func mixed() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let results = await callers(8, of: numbers, in: fixture) {
      $0 == 5 ? .value(5) : .notShared($0)
    }
    #expect(try results.map { try $0.get() } == (0..<8).map { $0 })
    #expect(try numbers.value(for: "a") == 5)
  }

  @Test(
    "A reply for one caller leaves the stale entry, and stale values are for whoever may have them."
  )
  func staleEntries() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleIfError = .seconds(500) }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(150))
    #expect(try await numbers.value(for: "a") { _ in .notShared(2) } == 2)
    #expect(try numbers.lookup(for: "a").kind == "stale")
    let entry = try await numbers.entry(for: "a") { _ in throw NotShared(Refused(caller: 1)) }
    #expect(entry?.value == 1 && entry?.loadFailure as? Refused == Refused(caller: 1))
  }

  @Test("For a time after a reply for one caller, callers do not wait for each other.")
  func notSharedFor() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.notSharedFor = .seconds(120) }
    func load(_ source: Source) -> Task<Int?, any Error> {
      Task { try await numbers.value(for: "a", load: source.load) }
    }
    #expect(try await numbers.value(for: "a") { _ in .notShared(1) } == 1)
    let source = Source()
    let alone = (0..<5).map { _ in load(source) }
    await source.begun(5)
    #expect(fixture.loads().joins == 0)
    source.reply((0..<5).map { .success($0 == 3 ? .value(3) : .notShared($0)) })
    var values: [Int] = []
    for task in alone { values.append(try await task.value ?? -1) }
    #expect(values.sorted() == [0, 1, 2, 3, 4])
    try numbers.remove("a")
    // A reply that may be shared ended it, unless one for one caller came after it.
    #expect(try await numbers.value(for: "a") { _ in .absent } == nil)
    // An error for one caller does not begin it.
    await #expect(throws: Refused.self) {
      try await numbers.value(for: "a") { _ in throw NotShared(Refused(caller: 1)) }
    }
    let third = Source()
    let joined = [load(third), load(third)]
    await eventually("one has joined") { fixture.loads().joins == 1 }
    third.reply([.success(.notShared(7)), .success(.notShared(8))])
    for task in joined { _ = try await task.value }
    // After the time, callers wait for each other again.
    fixture.clock.advance(by: .seconds(121))
    let last = Source()
    let waiting = [load(last), load(last)]
    await eventually("one has joined again") { fixture.loads().joins == 2 }
    last.reply(9)
    for task in waiting { #expect(try await task.value == 9) }
  }

  @Test("A caller that leaves while it loads for itself, and one whose store is closed, end.")
  func leaving() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let (first, second) = (Source(), Source())
    let owner = Task { try await numbers.value(for: "a", load: first.load) }
    await first.begun(1)
    let joined = (0..<2).map { _ in
      Task { try await numbers.value(for: "a", load: second.load) }
    }
    await eventually("both have joined") { fixture.loads().joins == 2 }
    first.reply([.success(.notShared(1))])
    #expect(try await owner.value == 1)
    await second.begun(2)
    joined[0].cancel()
    await #expect(throws: CancellationError.self) { try await joined[0].value }
    await second.state.wait { $0.ended == 1 }
    try fixture.store.close()
    guard case .failure(StoreError.closed) = await joined[1].result else {
      Issue.record("not closed")
      return
    }
    await second.state.wait { $0.cancelled == 2 }
  }

  @Test("A load that waits for another one's key is told if it would wait for itself, also alone.")
  func circles() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let owner = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    let outer = Task {
      try await numbers.value(for: "b") { _ in
        // Joins the load of "a"; then loads "a" for itself, which asks for "b".
        let inner = try await numbers.value(for: "a") { _ in
          try await numbers.value(for: "b") { _ in .value(0) }.map { .value($0) } ?? .absent
        }
        return inner.map { .value($0) } ?? .absent
      }
    }
    await eventually("the inner call has joined") { fixture.loads().joins == 1 }
    source.reply([.success(.notShared(1))])
    #expect(try await owner.value == 1)
    guard case .failure(StoreError.invalidArgument) = await outer.result else {
      Issue.record("a circle")
      return
    }
  }

  @Test("A reply that there is nothing can say for how long.")
  func absentFor() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.absentFor = .seconds(60) }
    for (span, wait) in [(600, 600), (5, 5), (0, 0), (-1, 0)] {
      #expect(try await numbers.value(for: "a") { _ in .absent(for: .seconds(span)) } == nil)
      if wait > 0 {
        fixture.clock.advance(by: .seconds(wait - 1))
        #expect(try await numbers.value(for: "a") { _ in .value(1) } == nil)
        fixture.clock.advance(by: .seconds(1))
      }
      #expect(try await numbers.value(for: "a") { _ in .unsaved(1) } == 1)
    }
    #expect(try await numbers.value(for: "a") { _ in .absent } == nil)
    fixture.clock.advance(by: .seconds(59))
    #expect(try await numbers.value(for: "a") { _ in .value(1) } == nil)
    fixture.clock.advance(by: .seconds(1))
    #expect(try await numbers.value(for: "a") { _ in .value(1) } == 1)
  }

  // MARK: Sources that say when to ask again

  struct Busy: RetryTimeError, Equatable { let retryAfter: Duration? }

  @Test("A repetition waits as long as the source says, and longer than allowed not at all.")
  func repetitions() async throws {
    let fixture = try LoadFixture(chance: 0.5)
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.retries = Loading.Retries(extra: 2, first: .seconds(2), upTo: .seconds(30))
    }
    let calls = Watched(0)
    let task = Task {
      try await numbers.value(for: "a") { _ -> LoadReply<Int> in
        switch calls.change({
          $0 += 1; return $0
        }) {
        case 1: throw Busy(retryAfter: .seconds(20))
        case 2: throw Busy(retryAfter: .zero)
        default: return .value(7)
        }
      }
    }
    await fixture.timer.fire(.seconds(20))
    // Half of twice two seconds: the source has no wish.
    await fixture.timer.fire(.seconds(2))
    #expect(try await task.value == 7)
    let busy = Busy(retryAfter: .seconds(31))
    await #expect(throws: busy) { try await numbers.value(for: "b") { _ in throw busy } }
    #expect(fixture.timer.started == [.seconds(20), .seconds(2)])
  }

  @Test("The throttle lasts as long as the source says, a day at most.")
  func throttle() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers(lifetime: .fresh(for: .seconds(1), thenStaleFor: .unlimited))
    {
      $0.staleWhileRevalidate = true
      $0.retryThrottle = .seconds(30)
    }
    try numbers.save(1, for: "a")
    for (wish, wait) in [(5, 30), (600, 600), (1_000_000, 86_400)] {
      fixture.clock.advance(by: .seconds(100))
      let failures = fixture.loads().failures
      let failed = try await numbers.entry(for: "a") { _ in
        throw Busy(retryAfter: .seconds(wish))
      }
      #expect(failed?.isRefreshing == true)
      await eventually("the refresh has failed") { fixture.loads().failures == failures + 1 }
      await eventually("its load is over") { fixture.store.context.loads.isEmpty }
      fixture.clock.advance(by: .seconds(wait - 1))
      let throttled = try await numbers.entry(for: "a") { _ in .value(2) }
      #expect(throttled?.loadFailure as? Busy == Busy(retryAfter: .seconds(wish)))
      fixture.clock.advance(by: .seconds(2))
    }
    #expect(try await numbers.entry(for: "a") { _ in .value(2) }?.isRefreshing == true)
  }
}
