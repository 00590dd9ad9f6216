import Foundation
import LarderEngine
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Observers see what was committed, in commit order, and never block a write.
@Suite(.timeLimit(.minutes(30))) struct ChangesTests {
  /// The changes until the store is closed, or the first `count` of them.
  private func read<V: Sendable>(
    _ changes: Changes<String, V>, _ count: Int = .max
  ) async -> [String] {
    var found: [String] = []
    for await change in changes {
      let key = change.key ?? "*"
      switch change.kind {
      case .set(let value): found.append("\(key)=\(value)")
      case .removed: found.append("\(key) removed")
      case .expired: found.append("\(key) expired")
      case .evicted: found.append("\(key) evicted")
      case .cleared: found.append("\(key) cleared")
      case .invalidated(let tag): found.append("\(key) invalidated \(tag)")
      }
      if found.count == count { break }
    }
    return found
  }

  @Test("Changes arrive in the order of their commits.", arguments: StoreKind.allCases)
  func order(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let other = try fixture.store.cache("b", of: Int.self)
    try cache.save(0, for: "x")
    let changes = cache.changes()
    try cache.save(1, for: "x")
    try cache.save(2, for: "y")
    try other.save(9, for: "x")
    try cache.remove("x")
    try cache.remove("x")
    try cache.touch("y")
    fixture.clock.advance(by: .seconds(8 * 86_400))
    try cache.validate()
    try fixture.store.write { batch in
      batch.save(3, for: "z", in: cache)
      batch.remove("w", from: cache)
    }
    try fixture.store.close()
    #expect(
      await read(changes) == [
        "x=1", "y=2", "x removed", "y=2", "y expired", "z=3", "w removed",
      ])
  }

  @Test(
    "An observer of one key sees its changes and clears, and no other keys.",
    arguments: StoreKind.allCases)
  func oneKey(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let changes = cache.changes(for: "x")
    for (number, key) in ["x", "xx", "", "x"].enumerated() { try cache.save(number, for: key) }
    try cache.removeAll()
    try cache.save(7, for: "y")
    try cache.save(8, for: "x")
    try fixture.store.close()
    #expect(await read(changes) == ["x=0", "x=3", "* cleared", "x=8"])
  }

  @Test("A clear in a batch is reported at its place in the batch.", arguments: StoreKind.allCases)
  func clearInBatch(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let changes = cache.changes()
    try cache.save(1, for: "x")
    try fixture.store.write { batch in
      batch.save(2, for: "y", in: cache)
      batch.removeAll(from: cache)
      batch.save(3, for: "z", in: cache)
    }
    try cache.save(4, for: "x")
    try cache.removeAll()
    try cache.save(5, for: "x")
    try fixture.store.close()
    #expect(
      await read(changes) == ["x=1", "y=2", "* cleared", "z=3", "x=4", "* cleared", "x=5"])
  }

  @Test("A clear that took effect on reopening is reported with the next change.")
  func lateClear() async throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let changes = cache.changes()
    // As when the database reopens after a failed write that had reached the disk.
    cache.core.id += 1
    try cache.save(1, for: "x")
    try fixture.store.close()
    #expect(await read(changes) == ["* cleared", "x=1"])
  }

  @Test("Failed writes are not reported.")
  func failures() async throws {
    let base = InMemoryEngine()
    let engine = InterruptedEngine(base)
    let store = try Store(engine: engine, origin: .memory)
    let cache = try store.cache("a", of: Int.self)
    try cache.save(1, for: "x")
    let changes = cache.changes()
    engine.beforeNextWrite = { throw EngineError.diskFull }
    #expect(throws: StoreError.self) { try cache.save(2, for: "x") }
    // A failed condition: the entry was saved meanwhile.
    engine.beforeNextWrite = { try cache.save(3, for: "x") }
    #expect(try cache.touch("x") == false)
    try store.close()
    #expect(await read(changes) == ["x=3"])
  }

  @Test("Rows of a batch whose condition failed are not reported.")
  func partOfABatch() async throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .memory)
    let cache = try store.cache("a", of: Int.self)
    for key in ["x", "y", "z"] { try cache.save(1, for: key) }
    clock.advance(by: .seconds(8 * 86_400))
    let changes = cache.changes()
    // Saved again just before the expired entries are deleted.
    engine.beforeNextWrite = { try cache.save(2, for: "y") }
    try cache.validate()
    try store.close()
    #expect(await read(changes) == ["y=2", "x expired", "z expired"])
  }

  @Test("Entries that a sweep deletes are reported as expired.", arguments: StoreKind.allCases)
  func sweep(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    for key in ["x", "y"] { try cache.save(1, for: key) }
    fixture.clock.advance(by: .seconds(8 * 86_400))
    let changes = cache.changes()
    try cache.save(2, for: "y")
    #expect(try fixture.store.sweep() == 1)
    try fixture.store.close()
    #expect(await read(changes) == ["y=2", "x expired"])
  }

  /// A save that began before a clear and is committed after it takes effect before it.
  @Test("A save that a clear overtook is not reported after the clear.")
  func saveBeforeClear() async throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let changes = cache.changes()
    let number = cache.core.id
    try cache.removeAll()
    let newNumber = cache.core.id
    cache.core.id = number
    try cache.save(1, for: "x")
    cache.core.id = newNumber
    try cache.save(2, for: "y")
    try fixture.store.close()
    #expect(await read(changes) == ["* cleared", "y=2"])
  }

  @Test("A migration reports no changes.")
  func migration() async throws {
    let engine = InMemoryEngine()
    let old = try Store(engine: engine, origin: .memory)
    try old.cache("a", of: Int.self, coder: .json).save(1, for: "x")
    let store = try Store(engine: engine, origin: .memory)
    let cache = try store.cache("a", of: Int.self)
    let changes = cache.changes()
    #expect(try store.migrate(cache).migrated == 1)
    try cache.save(2, for: "y")
    try store.close()
    #expect(await read(changes) == ["y=2"])
  }

  @Test("A slow reader keeps the newest changes.")
  func slowReader() async throws {
    let store = Store.inMemory()
    let cache = try store.cache("a", of: Int.self)
    let changes = cache.changes(buffered: 3)
    for number in 0..<1000 { try cache.save(number, for: "x") }
    try store.close()
    #expect(await read(changes) == ["x=997", "x=998", "x=999"])
  }

  @Test("A stream ends when its task is cancelled and when its store is closed.")
  func ends() async throws {
    let store = Store.inMemory()
    let cache = try store.cache("a", of: Int.self)
    let changes = cache.changes()
    let task = Task { await read(changes) }
    task.cancel()
    #expect(await task.value == [])
    #expect(store.context.observations.isEmpty, "nobody observes the store")

    let closed = cache.changes()
    try store.close()
    #expect(await read(closed) == [])
    #expect(await read(cache.changes()) == [], "of a closed store")
  }

  @Test("A stream ends with the last reference to its store.")
  func endsWithStore() async throws {
    func observe() throws -> Changes<String, Int> {
      let cache = try Store.inMemory().cache("a", of: Int.self)
      let changes = cache.changes()
      try cache.save(1, for: "x")
      return changes
    }
    #expect(await read(try observe()) == ["x=1"])
  }

  @Test("A store keeps no changes for an abandoned stream.")
  func unread() throws {
    let store = Store.inMemory()
    let cache = try store.cache("a", of: Int.self)
    do {
      _ = cache.changes()
    }
    #expect(store.context.observations.isEmpty)
  }

  @Test(
    "With several writers, changes arrive in commit order and none is missing.",
    arguments: StoreKind.allCases)
  func threads(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: [Int].self)
    let (threads, steps) = (4, 500)
    let changes = cache.changes(buffered: threads * steps * 2)
    let failures = Mutex<[String]>([])
    onThreads(threads) { thread in
      for step in 0..<steps {
        do {
          try cache.save([thread, step], for: "key \(step % 7)")
          if step % 5 == 0 { try cache.remove("key \(step % 7)") }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
    // The last reported change of a key is its current value.
    var last: [String: [Int]] = [:]
    var state: [String: [Int]] = [:]
    for key in (0..<7).map({ "key \($0)" }) { state[key] = try cache.value(for: key) }
    try fixture.store.close()
    var seen = Array(repeating: -1, count: threads)
    var sets = 0
    for await change in changes {
      let key = try #require(change.key)
      guard case .set(let value) = change.kind else {
        last[key] = nil
        continue
      }
      #expect(value[1] > seen[value[0]], "each thread's own in their order")
      seen[value[0]] = value[1]
      last[key] = value
      sets += 1
    }
    #expect(sets == threads * steps)
    #expect(last == state)
  }
}
