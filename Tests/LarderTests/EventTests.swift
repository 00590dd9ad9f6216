import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Reads, loads and deletions that a store makes by itself are reported, as they are counted.
@Suite(.timeLimit(.minutes(10))) struct EventTests {
  /// The events so far, as words.
  final class Log: Sendable {
    private let events = Mutex<[String]>([])

    func add(_ event: CacheEvent) {
      let what =
        switch event.kind {
        case .read(let outcome): "\(outcome)"
        case .loaded(let time, let failure): "loaded in \(time)\(failure.map { ": \($0)" } ?? "")"
        case .deleted(let cause, let bytes): "\(cause) \(bytes > 0)"
        }
      events.withLock { $0.append("\(event.cache) \(event.key) \(what)") }
    }

    /// The events since the last call, but for reads on the way of others.
    func taken() -> [String] {
      events.withLock { events in
        defer { events = [] }
        return events
      }
    }
  }

  private let log = Log()

  private func fixture(
    _ kind: StoreKind, configure: @escaping (inout Store.Options) -> Void = { _ in }
  ) throws -> Fixture {
    try Fixture(kind) { [log] options in
      options.eventHandler = { log.add($0) }
      configure(&options)
    }
  }

  @Test("A read is reported with its key and outcome.", arguments: StoreKind.allCases)
  func reads(kind: StoreKind) throws {
    let fixture = try fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "a", of: Int.self, keyedBy: Int.self,
      lifetime: Lifetime(.seconds(100), thenStaleFor: .seconds(100)))
    try cache.save(1, for: -5)
    #expect(log.taken().isEmpty)
    for _ in 0..<2 { _ = try cache.value(for: -5) }
    _ = try cache.lookup(for: -5)
    _ = try cache.contains(6)
    let hit = kind == .memory ? "fresh" : "memory"
    #expect(log.taken() == ["a -5 fresh", "a -5 \(hit)", "a -5 \(hit)", "a 6 missing"])
    fixture.clock.advance(by: .seconds(100))
    _ = try cache.value(for: -5)
    fixture.clock.advance(by: .seconds(100))
    _ = try cache.values(for: [-5, 7])
    #expect(log.taken() == ["a -5 stale", "a -5 expired", "a 7 missing"])
    try fixture.store.close()
    #expect(throws: StoreError.self) { try cache.value(for: 1) }
    #expect(log.taken() == ["a 1 failed"])
  }

  @Test("A load is reported with its time, and its error if it failed.")
  func loads() async throws {
    let fixture = try fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let clock = fixture.clock
    let values = try await cache.values(for: ["b", "c"]) { keys in
      clock.advance(by: .seconds(3))
      return keys.map { _ in .value(1) }
    }
    #expect(values.count == 2)
    #expect(
      log.taken() == [
        "a b missing", "a c missing", "a b loaded in 3.0 seconds", "a c loaded in 3.0 seconds",
      ])
    await #expect(throws: CancellationError.self) {
      try await cache.refresh("b") { _ in throw CancellationError() }
    }
    #expect(log.taken() == ["a b fresh", "a b loaded in 0.0 seconds: CancellationError()"])
  }

  @Test("An entry that a sweep, a validation or a budget deletes is reported with the cause.")
  func deletions() throws {
    let fixture = try fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self, lifetime: .seconds(10))
    try cache.save(1, for: "x")
    try cache.save(2, for: "y", tags: ["t"])
    try store.invalidate(tag: "t")
    #expect(try store.sweep() == 1)
    #expect(log.taken() == ["a y sweep true"])
    try cache.save(2, for: "y")
    fixture.clock.advance(by: .seconds(10))
    #expect(try store.sweep() == 2)
    #expect(Set(log.taken()) == ["a x sweep true", "a y sweep true"])
    try cache.save(1, for: "x")
    fixture.clock.advance(by: .seconds(10))
    _ = try cache.validate()
    #expect(log.taken() == ["a x validation true"])
    let small = try store.cache("b", of: Data.self, keyedBy: UUID.self, byteBudget: 10_000)
    let keys = (0..<11).map { _ in UUID() }
    for key in keys { try small.save(Data(count: 900), for: key) }
    let evicted = log.taken()
    #expect(evicted.count == store.statistics.caches["b"]?.deletions.cacheBudget.entries)
    #expect(Set(evicted).isSubset(of: keys.map { "b \($0) cacheBudget true" }))
    #expect(!evicted.isEmpty)
  }

  @Test("A cache that is not open is reported, too: swept, and evicted by the store's budget.")
  func dormant() throws {
    let fixture = try fixture(.disk) { $0.byteBudget = 10_000 }
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "a", of: Data.self, keyedBy: Int.self, lifetime: .seconds(10))
    try cache.save(Data(count: 900), for: 1)
    try cache.save(Data(count: 900), for: 2, lifetime: .days(7))
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(10))
    #expect(try fixture.store.sweep() == 1)
    #expect(log.taken() == ["a 1 sweep true"])
    let other = try fixture.store.cache("b", of: Data.self)
    for number in 0..<10 { try other.save(Data(count: 900), for: "\(number)") }
    #expect(log.taken().first == "a 2 storeBudget true")
  }
}
