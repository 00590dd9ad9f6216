import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// What becomes of two calls if the second one comes while the first one looks for the key.
@Suite(.timeLimit(.minutes(10))) struct LoadLookTests {
  typealias SlowNumber = LoadInvalidationTests.SlowNumber

  @TaskLocal static var caller = ""

  /// A cache with an entry whose decoding waits.
  private struct Slow {
    let fixture: LoadFixture
    let numbers: Cache<String, SlowNumber>
    let number: Int
    let gate: SlowNumber.Gate
    /// The callers whose closures were called.
    let begun = Watched([String]())

    init(_ kind: StoreKind) throws {
      fixture = try LoadFixture(kind)
      (number, gate) = SlowNumber.gated()
      numbers = try fixture.store.cache(
        "numbers", of: SlowNumber.self, lifetime: .fresh(for: .seconds(100)), memory: .none)
      try numbers.save(SlowNumber(number), for: "a")
    }

    func call(_ name: String, on executor: (any TaskExecutor)? = nil) -> Task<
      Int, any Error
    > {
      LoadLookTests.$caller.withValue(name) {
        Task(executorPreference: executor) { [numbers, begun] in
          try await numbers.value(for: "a") {
            begun.change { $0.append(LoadLookTests.caller) }
            return SlowNumber(3)
          }.number
        }
      }
    }

    /// A call that looks, and one that waits for its look.
    func twoCalls() async -> (first: Task<Int, any Error>, second: Task<Int, any Error>) {
      let first = call("first")
      await gate.begun.wait { $0 }
      // It waits for the look when it has returned from its first step.
      return (first, call("second", on: ImmediateExecutor()))
    }
  }

  @Test(
    "A look that is cancelled does not end the wait of another call.",
    arguments: StoreKind.allCases)
  func cancelled(kind: StoreKind) async throws {
    let slow = try Slow(kind)
    defer { slow.fixture.end() }
    defer { slow.gate.mayEnd.raise() }
    let (first, second) = await slow.twoCalls()
    first.cancel()
    slow.gate.mayEnd.raise()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(try await second.value == slow.number)
    #expect(slow.begun.read { $0 } == [])
    #expect(slow.numbers.core.context.loads.isEmpty)
    // What a cancelled call has found is not used.
    #expect(slow.fixture.store.statistics.caches["numbers"]?.reads.fresh == 2)
  }

  @Test(
    "A call that waits for a look loads in its own task's context, for both.",
    arguments: StoreKind.allCases)
  func ownContext(kind: StoreKind) async throws {
    let slow = try Slow(kind)
    defer { slow.fixture.end() }
    defer { slow.gate.mayEnd.raise() }
    slow.fixture.clock.advance(by: .seconds(200))
    let (first, second) = await slow.twoCalls()
    slow.gate.mayEnd.raise()
    #expect(try await first.value == 3)
    #expect(try await second.value == 3)
    #expect(slow.begun.read { $0 } == ["second"])
    #expect(slow.fixture.loads().joins == 1)
  }

  @Test(
    "A call that waits for a look ends when the store is closed.",
    arguments: StoreKind.allCases)
  func closed(kind: StoreKind) async throws {
    let slow = try Slow(kind)
    defer { slow.gate.mayEnd.raise() }
    let (first, second) = await slow.twoCalls()
    let store = slow.fixture.store
    let closing = Task.detached { try store.close() }
    await #expect(throws: StoreError.closed) { try await second.value }
    slow.gate.mayEnd.raise()
    try await closing.value
    _ = await first.result
    #expect(slow.begun.read { $0 } == [])
    slow.fixture.end()
  }

  @Test(
    "An entry that is changed again while it is read again is not returned.",
    arguments: StoreKind.allCases)
  func changedTwice(kind: StoreKind) async throws {
    let slow = try Slow(kind)
    defer { slow.fixture.end() }
    let (number, second) = SlowNumber.gated()
    defer { for gate in [slow.gate, second] { gate.mayEnd.raise() } }
    let caller = slow.call("first")
    await slow.gate.begun.wait { $0 }
    try slow.numbers.save(SlowNumber(number), for: "a")
    slow.gate.mayEnd.raise()
    await second.begun.wait { $0 }
    try slow.numbers.save(SlowNumber(4), for: "a")
    second.mayEnd.raise()
    #expect(try await caller.value == 4)
    #expect(slow.begun.read { $0 } == [])
  }

  @Test(
    "A caller whose executor is busy does not hold up a call that waits for its look.",
    arguments: StoreKind.allCases)
  func busyExecutor(kind: StoreKind) async throws {
    let slow = try Slow(kind)
    defer { slow.fixture.end() }
    defer { slow.gate.mayEnd.raise() }
    let executor = BusyExecutor()
    defer { executor.end() }
    let first = slow.call("first", on: executor)
    await slow.gate.begun.wait { $0 }
    executor.begin()
    let second = slow.call("second", on: ImmediateExecutor())
    slow.gate.mayEnd.raise()
    #expect(try await second.valueUnlessCancelled == slow.number)
    executor.end()
    #expect(try await first.value == slow.number)
    #expect(slow.begun.read { $0 } == [])
  }

  /// Runs a job at once, or keeps it while it is busy.
  private final class BusyExecutor: TaskExecutor {
    /// The jobs that it keeps; nil while it is not busy.
    private let kept = Mutex<[UnownedJob]?>(nil)

    func enqueue(_ job: UnownedJob) {
      let isKept = kept.withLock { kept in
        kept?.append(job)
        return kept != nil
      }
      if !isKept { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    func begin() { kept.withLock { $0 = [] } }

    /// Is busy no longer, and runs what it has kept.
    func end() {
      let jobs = kept.withLock { kept in
        defer { kept = nil }
        return kept ?? []
      }
      for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }

  @Test(
    "A call for several keys does not wait for a look, and reads for itself.",
    arguments: StoreKind.allCases)
  func severalKeys(kind: StoreKind) async throws {
    let slow = try Slow(kind)
    defer { slow.fixture.end() }
    defer { slow.gate.mayEnd.raise() }
    let first = slow.call("first")
    await slow.gate.begun.wait { $0 }
    let asked = Watched([[String]]())
    let several = Task(executorPreference: ImmediateExecutor()) { [numbers = slow.numbers] in
      try await numbers.values(for: ["a", "b"]) { keys in
        asked.change { $0.append(keys) }
        return keys.map { _ in .value(SlowNumber(5)) }
      }
    }
    slow.gate.mayEnd.raise()
    #expect(try await first.value == slow.number)
    #expect(try await several.value.map { $0?.number } == [slow.number, 5])
    #expect(asked.read { $0 } == [["b"]])
    #expect(slow.fixture.store.statistics.caches["numbers"]?.reads.fresh == 2)
    #expect(slow.numbers.core.context.loads.isEmpty)
  }
}
