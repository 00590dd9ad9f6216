import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Loads that hang, and tasks that outlive the load that has started them.
@Suite(.timeLimit(.minutes(10))) struct LoadHangTests {
  /// A load that waits for a test to let it end, also when it is cancelled.
  final class Hung: Sendable {
    let begun = Watched(0)
    private let mayEnd = Watched(false)

    func load(_ previous: Previous<Int>?) async throws -> LoadReply<Int> {
      begun.change { $0 += 1 }
      // In a task of its own, so that it is not cancelled.
      return await Task { [self] in
        await mayEnd.wait { $0 }
        return .value(99)
      }.value
    }

    func end() { mayEnd.change { $0 = true } }
  }

  @Test("A refresh that hangs is abandoned after the hard timeout, and its late reply is dropped.")
  func hungRefresh() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.staleWhileRevalidate = true
      $0.hardTimeout = .seconds(9)
    }
    let hung = Hung()
    defer { hung.end() }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(150))
    #expect(try await numbers.value(for: "a", load: hung.load) == 1)
    await hung.begun.wait { $0 == 1 }
    fixture.clock.advance(by: .seconds(5000))
    let joined = Task { try await numbers.value(for: "a", load: hung.load) }
    await eventually("the second caller has joined") { fixture.loads().joins == 1 }
    // The refresh and the caller have a timer each.
    await fixture.timer.wait(untilRunning: 2)
    await fixture.timer.fire(.seconds(9))
    await #expect(throws: LoadTimeout.self) { try await joined.valueUnlessCancelled }
    #expect(try await numbers.value(for: "a") { _ in .value(3) } == 3)
    #expect(fixture.store.context.loads.isEmpty)
    // The load's task ends its timer after the caller has the value.
    await eventually("no timer is running") { fixture.timer.running == [] }
    let time = fixture.loads().time
    fixture.clock.advance(by: .seconds(10))
    hung.end()
    await eventually("the late reply has come") { fixture.loads().time > time }
    #expect(try numbers.value(for: "a") == 3)
  }

  /// Joins the load that `first` waits for, with a longer time, and lets the time of `first` end.
  ///
  /// The load goes on for the second caller.
  private func secondCaller(
    of numbers: Cache<String, Int>,
    _ load: @escaping @Sendable (Previous<Int>?) async throws -> LoadReply<Int>,
    after first: Task<Int?, any Error>, in fixture: LoadFixture
  ) async -> Task<Int?, any Error> {
    var patient = Loading()
    patient.hardTimeout = .seconds(60)
    let second = Task { [patient] in
      try await numbers.value(for: "a", loading: patient, load: load)
    }
    await eventually("the second caller has joined") { fixture.loads().joins == 1 }
    await fixture.timer.wait(untilRunning: 3)
    #expect(await fixture.timer.fire(.seconds(9)) == 2)
    await #expect(throws: LoadTimeout.self) { try await first.valueUnlessCancelled }
    return second
  }

  @Test("Callers that come after the hard timeout of a load do not join it.")
  func callersAfterTimeout() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.hardTimeout = .seconds(9) }
    let hung = Hung()
    defer { hung.end() }
    let first = Task { try await numbers.value(for: "a", load: hung.load) }
    await hung.begun.wait { $0 == 1 }
    let second = await secondCaller(of: numbers, hung.load, after: first, in: fixture)
    #expect(try await numbers.value(for: "a") { _ in .value(3) } == 3)
    hung.end()
    #expect(try await second.valueUnlessCancelled == 99)
    // The later load has taken over the key.
    #expect(try numbers.value(for: "a") == 3)
  }

  @Test("After the hard timeout of a load, it is cancelled once its last caller leaves.")
  func lastCaller() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.hardTimeout = .seconds(9) }
    let source = Source()
    let first = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    let second = await secondCaller(of: numbers, source.load, after: first, in: fixture)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.valueUnlessCancelled }
    await source.state.wait { $0.ended == 1 }
    #expect(source.state.read { $0.cancelled } == 1)
    #expect(fixture.store.context.loads.isEmpty && fixture.timer.running == [])
  }

  @Test("Loads that hang, whether their callers time out or are cancelled, give back their slots.")
  func slots() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.concurrent = 2
      $0.hardTimeout = .seconds(9)
    }
    let hung = Hung()
    defer { hung.end() }
    let tasks = ["a", "b"].map { key in
      Task { try await numbers.value(for: key, load: hung.load) }
    }
    await hung.begun.wait { $0 == 2 }
    await fixture.timer.wait(untilRunning: 4)
    tasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[0].valueUnlessCancelled }
    await fixture.timer.fire(.seconds(9))
    await #expect(throws: LoadTimeout.self) { try await tasks[1].valueUnlessCancelled }
    #expect(try await numbers.value(for: "c") { _ in .value(5) } == 5)
    #expect(fixture.store.context.loads.isEmpty)
  }

  // MARK: - Ends

  private struct Weak { weak var store: Store? }

  /// Loads values in each way, and returns the store, which is not closed.
  private func storeAfterLoads(at place: URL) async throws -> Weak {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let store = try Store(at: place, options: options)
    var loading = Loading()
    loading.staleWhileRevalidate = true
    loading.retryThrottle = .seconds(60)
    loading.absentFor = .seconds(60)
    let numbers = try store.cache(
      "numbers", of: Int.self, lifetime: LoadFixture.lifetime, loading: loading)
    #expect(try await numbers.value(for: "loaded") { _ in .value(1) } == 1)
    #expect(try await numbers.value(for: "absent") { _ in .absent } == nil)
    await #expect(throws: Source.Failure.self) {
      try await numbers.value(for: "failed") { _ in throw Source.Failure() }
    }
    let source = Source()
    let cancelled = Task { try await numbers.value(for: "cancelled", load: source.load) }
    await source.begun(1)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.valueUnlessCancelled }
    clock.advance(by: .seconds(150))
    #expect(try await numbers.value(for: "loaded") { _ in .value(2) } == 1)
    try await eventually("the refresh is saved") { try numbers.value(for: "loaded") == 2 }
    return Weak(store: store)
  }

  @Test("A store that is not closed ends with its last reference, whatever it has loaded.")
  func storeEnds() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"), directoryHint: .isDirectory)
    let store = try await storeAfterLoads(at: place)
    await eventually("the store has ended") { store.store == nil }
    // The thread with the last reference closes the files a moment later.
    try await eventually("the files are closed") {
      do {
        let again = try Store(at: place)
        #expect(try again.cacheNames == ["numbers"])
        try again.close()
        return true
      } catch StoreError.locked {
        return false
      }
    }
  }

  // MARK: - Tasks that outlive a load

  @Test("A task that outlives the load that has started it may ask for the load's key.")
  func taskAfterLoad() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.concurrent = 1 }
    let mayAsk = Watched(false)
    let started = Watched([Task<Int, any Error>]())
    let running = Watched((now: 0, most: 0))
    let ask = { @Sendable (number: Int) async throws -> Int in
      await mayAsk.wait { $0 }
      return try await numbers.value(for: "\(number)") {
        running.change { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
        for _ in 0..<10 { await Task.yield() }
        running.change { $0.now -= 1 }
        return number
      }
    }
    let value: Int = try await numbers.value(for: "0") {
      started.change { $0 = (0..<4).map { number in Task { try await ask(number) } } }
      return 10
    }
    #expect(value == 10)
    try numbers.remove("0")
    mayAsk.change { $0 = true }
    for (number, task) in started.read({ $0 }).enumerated() {
      #expect(try await task.valueUnlessCancelled == number)
    }
    // They are no part of a load, and take turns.
    #expect(running.read { $0.most } == 1)
  }

  @Test("A task of a load that was abandoned may ask for the load's key.")
  func taskOfAbandonedLoad() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.hardTimeout = .seconds(9) }
    let (begun, mayAsk) = (Watched<Task<Int, any Error>?>(nil), Watched(false))
    let first = Task {
      try await numbers.value(for: "a") {
        let asking = Task {
          await mayAsk.wait { $0 }
          return try await numbers.value(for: "a") { 5 } as Int
        }
        begun.change { $0 = asking }
        return try await asking.value
      }
    }
    await begun.wait { $0 != nil }
    // The call and the load have a timer each.
    await fixture.timer.wait(untilRunning: 2)
    await fixture.timer.fire(.seconds(9))
    await #expect(throws: LoadTimeout.self) { try await first.valueUnlessCancelled }
    // The closure still runs.
    mayAsk.change { $0 = true }
    let asking = try #require(begun.read { $0 })
    #expect(try await asking.valueUnlessCancelled == 5)
    #expect(try numbers.value(for: "a") == 5)
  }

  @Test("A task of a failed attempt does not make the next attempt wait for itself.")
  func taskOfFailedAttempt() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers {
      $0.retries = Loading.Retries(extra: 1, first: .seconds(1), upTo: .seconds(1))
    }
    let (attempts, others) = (Watched(0), Watched(0))
    let (mayFail, mayAsk, mayEnd) = (Watched(false), Watched(false), Watched(false))
    let left = Watched<Task<Int, any Error>?>(nil)
    let askOther = { @Sendable () async throws -> Int in
      try await numbers.value(for: "b") {
        others.change { $0 += 1 }
        await mayAsk.wait { $0 }
        return try await numbers.value(for: "a") { 7 } + 1
      }
    }
    let first = Task { () async throws -> Int in
      try await numbers.value(for: "a") {
        let attempt = attempts.change { count in
          count += 1
          return count
        }
        if attempt == 2 {
          await mayEnd.wait { $0 }
          return 1
        }
        left.change { $0 = Task { try await askOther() } }
        await mayFail.wait { $0 }
        throw Source.Failure()
      }
    }
    await others.wait { $0 == 1 }
    mayFail.change { $0 = true }
    await fixture.timer.fire(.milliseconds(500))
    await attempts.wait { $0 == 2 }
    mayAsk.change { $0 = true }
    await eventually("the other load has joined") { fixture.loads().joins == 1 }
    mayEnd.change { $0 = true }
    #expect(try await first.valueUnlessCancelled == 1)
    let task = try #require(left.read { $0 })
    #expect(try await task.valueUnlessCancelled == 2)
  }
}
