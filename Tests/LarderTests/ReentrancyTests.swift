import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Code of the user that a store calls (the clock, the coding of values) may call the store.
///
/// The store holds no lock and is not inside the engine's gate while user code runs. Otherwise a
/// call would trap or deadlock.
@Suite struct ReentrancyTests {
  /// A call of the store, by name.
  struct Call: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let run: @Sendable (CalledBench) throws -> Void

    init(_ name: String, _ run: @escaping @Sendable (CalledBench) throws -> Void) {
      testDescription = name
      self.run = run
    }
  }

  static let calls: [Call] = [
    Call("sweep") { try $0.store.sweep() },
    Call("timer") { $0.timer.fire() },
    Call("cache") { bench in
      _ = try bench.store.cache("new \(bench.nextNumber())", of: Int.self)
    },
    Call("save") { try $0.cache.save(CallingValue(1), for: "save") },
    Call("save with eviction") { bench in
      try bench.small.save([UInt8](repeating: 0, count: 3000), for: bench.nextNumber())
    },
    Call("clear and save with eviction") { bench in
      try bench.store.write { batch in
        batch.removeAll(from: bench.cleared)
        batch.save([UInt8](repeating: 0, count: 3000), for: bench.nextNumber(), in: bench.small)
      }
    },
    Call("value") { _ = try $0.cache.value(for: "kept") },
    Call("lookup") { _ = try $0.cache.lookup(for: "kept") },
    Call("touch") { try $0.cache.touch("kept") },
    Call("remove") { try $0.cache.remove("removed") },
    Call("removeAll") { try $0.cleared.removeAll() },
    Call("drop") { bench in
      let name = "dropped \(bench.nextNumber())"
      _ = try bench.store.cache(name, of: Int.self)
      try bench.store.drop(cache: name)
    },
    Call("validate") { try $0.cache.validate() },
    Call("migrate") { try $0.store.migrate($0.cache) },
    Call("contents") { _ = try $0.store.contents() },
    Call("statistics") { _ = $0.store.statistics },
    Call("flush") { try $0.store.flush() },
    Call("changes") { _ = $0.cache.changes() },
    Call("entries") { bench in
      let cursor = try bench.cache.entries()
      while try cursor.next() != nil {}
    },
    Call("keys") { bench in
      let cursor = try bench.cache.keys()
      while try cursor.next() != nil {}
    },
  ]

  @Test(
    "A clock may call the store whenever the store reads it.", .timeLimit(.minutes(30)),
    arguments: StoreKind.allCases, calls)
  func clock(kind: StoreKind, outer: Call) throws {
    for inner in Self.calls {
      let fixture = try Fixture(kind)
      defer { fixture.end() }
      let caller = Caller()
      let bench = try CalledBench(fixture.engine, caller)
      caller.beCalled { try inner.run(bench) }
      try outer.run(bench)
      caller.stop()
      #expect(caller.failures == [], "\(inner.testDescription)")
    }
  }

  @Test(
    "Values may call the store while they are encoded and decoded.", .timeLimit(.minutes(30)),
    arguments: StoreKind.allCases, calls)
  func coding(kind: StoreKind, inner: Call) throws {
    for outer in Self.calls {
      let fixture = try Fixture(kind)
      defer { fixture.end() }
      let caller = Caller()
      let bench = try CalledBench(fixture.engine)
      caller.beCalled { try inner.run(bench) }
      try CallingValue.$caller.withValue(caller) { try outer.run(bench) }
      caller.stop()
      #expect(caller.failures == [], "\(outer.testDescription)")
    }
  }

  /// On another thread, so that a call that deadlocks does not hang the run.
  @Test(
    "A store may be closed while it decodes a value or reads the clock.", .timeLimit(.minutes(30)),
    arguments: StoreKind.allCases, [true, false])
  func close(kind: StoreKind, byClock: Bool) async throws {
    let failures = Watched<[String]?>(nil)
    Thread.detachNewThread {
      var found: [String] = []
      for outer in Self.calls {
        do {
          found += try failuresOfClosing(within: outer, kind, byClock: byClock)
        } catch {
          found.append("\(outer.testDescription): \(error)")
        }
      }
      failures.change { $0 = found }
    }
    await failures.wait { $0 != nil }
    #expect(failures.read { $0 } == [])
  }

  private func failuresOfClosing(
    within outer: Call, _ kind: StoreKind, byClock: Bool
  ) throws -> [String] {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let caller = Caller()
    let bench = try CalledBench(fixture.engine, byClock ? caller : nil)
    caller.beCalled { try bench.store.close() }
    do {
      try CallingValue.$caller.withValue(byClock ? nil : caller) { try outer.run(bench) }
    } catch let error as StoreError {
      // It was closed meanwhile.
      guard case .closed = error else { throw error }
    }
    caller.stop()
    return caller.failures
  }
}

/// A value that runs a closure whenever it is encoded or decoded.
struct CallingValue: Codable, Sendable {
  @TaskLocal fileprivate static var caller: Caller?

  var number: Int

  init(_ number: Int) { self.number = number }

  init(from decoder: any Decoder) throws {
    Self.caller?.call()
    number = try decoder.singleValueContainer().decode(Int.self)
  }

  func encode(to encoder: any Encoder) throws {
    Self.caller?.call()
    var container = encoder.singleValueContainer()
    try container.encode(number)
  }
}

/// Makes a call whenever it is called itself, but not from within that call.
final class Caller: Sendable {
  private struct State {
    var body: (@Sendable () throws -> Void)?
    var isCalling = false
    var failures: [String] = []
  }

  private let state = Mutex(State())

  /// The errors of the calls that it made.
  var failures: [String] { state.withLock { $0.failures } }

  func beCalled(_ body: @escaping @Sendable () throws -> Void) {
    state.withLock { $0.body = body }
  }

  func stop() { state.withLock { $0.body = nil } }

  func call() {
    let body = state.withLock { state in
      guard !state.isCalling, let body = state.body else {
        return nil as (@Sendable () throws -> Void)?
      }
      state.isCalling = true
      return body
    }
    guard let body else { return }
    do {
      try body()
    } catch {
      state.withLock { $0.failures.append("\(error)") }
    }
    state.withLock { $0.isCalling = false }
  }
}

/// A clock that runs a closure whenever it is read.
private struct CallingClock: WallClock {
  let clock: ManualClock
  let caller: Caller?

  func now() -> Date {
    caller?.call()
    return clock.now()
  }

  func uptime() -> Duration {
    caller?.call()
    return clock.uptime()
  }
}

/// A store with something to sweep, to evict, to clear and to migrate.
final class CalledBench: Sendable {
  let store: Store
  let timer = HandTimer()
  let cache: Cache<String, CallingValue>
  let cleared: Cache<String, Int>
  let small: Cache<Int, [UInt8]>
  private let number = Mutex(0)

  init(_ engine: any StorageEngine, _ caller: Caller? = nil) throws {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = CallingClock(clock: clock, caller: caller)
    let old = try Store(engine: engine, options: options, origin: .disk)
    try old.cache("cache", of: CallingValue.self, lifetime: .seconds(5000))
      .save(CallingValue(1), for: "old")
    options.sweepInterval = .seconds(60)
    options.sweepTrigger = timer.trigger
    store = try Store(engine: engine, options: options, origin: .disk)
    cache = try store.cache(
      "cache", of: CallingValue.self, lifetime: .seconds(5000),
      schema: Schema(version: 2).reading(1, as: CallingValue.self) { $0 })
    cleared = try store.cache("cleared", of: Int.self)
    small = try store.cache(
      "small", of: [UInt8].self, keyedBy: Int.self, coder: .bytes, byteBudget: 10_000)
    for key in ["kept", "removed"] { try cache.save(CallingValue(1), for: key) }
    try store.cache("expired", of: Int.self, lifetime: .seconds(100)).save(1, for: "key")
    for _ in 0..<3 { try small.save([UInt8](repeating: 0, count: 3000), for: nextNumber()) }
    clock.advance(by: .seconds(1000))
  }

  func nextNumber() -> Int {
    number.withLock { number in
      number += 1
      return number
    }
  }
}
