import Foundation
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
      case .set(let entry): found.append("\(key)=\(entry.value)")
      case .removed: found.append("\(key) removed")
      case .expired: found.append("\(key) expired")
      case .evicted: found.append("\(key) evicted")
      case .cleared: found.append("\(key) cleared")
      case .invalidated(let tag): found.append("\(key) invalidated \(tag)")
      case .missed(let count): found.append("\(count) missed")
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
    engine.beforeNextWrite = { throw StoreError.diskFull }
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
    #expect(await read(changes) == ["997 missed", "x=997", "x=998", "x=999"])
  }

  @Test("Each place where changes were dropped is marked, with their number.")
  func missed() async throws {
    let store = Store.inMemory()
    let cache = try store.cache("a", of: Int.self)
    var changes = cache.changes(buffered: 2).makeAsyncIterator()
    func words(_ change: Change<String, Int>?) -> String? {
      switch change?.kind {
      case .set(let entry)?: "\(entry.value)"
      case .missed(let count)?: "\(count) missed"
      case .some, nil: nil
      }
    }
    for number in 1...5 { try cache.save(number, for: "x") }
    #expect(words(await changes.next()) == "3 missed")
    #expect(words(await changes.next()) == "4")
    for number in 6...7 { try cache.save(number, for: "x") }
    #expect(words(await changes.next()) == "1 missed")
    #expect(words(await changes.next()) == "6")
    try cache.save(8, for: "x")
    #expect(words(await changes.next()) == "7")
    #expect(words(await changes.next()) == "8")
  }

  @Test("On request the entry comes first, and no change before it.", arguments: StoreKind.allCases)
  func initial(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    try cache.save(1, for: "x", lifetime: .hours(1))
    let empty = cache.changes(for: "y", initial: true)
    let changes = cache.changes(for: "x", initial: true)
    // The entry is read when the first change is asked for.
    try cache.save(2, for: "x", lifetime: .hours(1), validator: Validator("v"))
    try cache.remove("x")
    try cache.save(3, for: "x", lifetime: .hours(2), validator: Validator("w"))
    try cache.save(9, for: "y")
    var iterator = changes.makeAsyncIterator()
    guard case .set(let entry)? = await iterator.next()?.kind else {
      Issue.record("no entry")
      return
    }
    #expect(entry.value == 3 && entry.validator == Validator("w"))
    #expect(entry.lifetime == .hours(2) && entry.savedAt == fixture.clock.now())
    #expect(try entry.version == cache.entry(for: "x")?.version)
    try cache.save(4, for: "x", validator: Validator("z"))
    guard case .set(let changed)? = await iterator.next()?.kind else {
      Issue.record("no change")
      return
    }
    #expect(changed.value == 4 && changed.validator == Validator("z"))
    #expect(try changed.version == cache.entry(for: "x")?.version)
    try fixture.store.close()
    #expect(await read(empty) == ["y=9"])
  }

  @Test("Whoever begins with the entry ends with the last one, whatever is written meanwhile.")
  func initialRaces() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    let last = 20_000
    let observers = Task {
      await withTaskGroup(of: [Int].self) { group in
        for _ in 0..<8 {
          group.addTask {
            var seen: [Int] = []
            while seen.last != last, !Task.isCancelled {
              seen = []
              for await change in cache.changes(for: "x", initial: true) {
                guard case .set(let entry) = change.kind else { continue }
                seen.append(entry.value)
                if entry.value == last || seen.count == 50 { break }
              }
            }
            return seen
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
    }
    for number in 1...last { try cache.save(number, for: "x") }
    for seen in await observers.value {
      #expect(seen.last == last)
      #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 }, "each change once, in order")
    }
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
      guard case .set(let entry) = change.kind else {
        last[key] = nil
        continue
      }
      let value = entry.value
      #expect(value[1] > seen[value[0]], "each thread's own in their order")
      seen[value[0]] = value[1]
      last[key] = value
      sets += 1
    }
    #expect(sets == threads * steps)
    #expect(last == state)
  }
}

// MARK: - Many observers

/// An open cache that counts how often its id is read.
private final class CountedCache: OpenCache {
  private let base: any OpenCache
  private let currentID: Atomic<UInt64>
  let idReads = Atomic<Int>(0)

  init(_ base: any OpenCache, id: UInt64) {
    self.base = base
    currentID = Atomic(id)
  }

  var id: UInt64 {
    get {
      idReads.add(1, ordering: .relaxed)
      return currentID.load(ordering: .relaxed)
    }
    set { currentID.store(newValue, ordering: .relaxed) }
  }
  var name: String { base.name }
  var keyKind: KeyKind { base.keyKind }
  var byteBudget: Int? { nil }
  var recentReads: RecentReads? { nil }
  var slides: Slides? { nil }
  var memory: CacheMemory? { nil }
  var settings: CacheSettings { base.settings }
  var features: EntryFeatures {
    get { base.features }
    set {}
  }
  func registration(id: UInt64) -> Registration { base.registration(id: id) }
}

extension ChangesTests {
  /// A batch that puts a row under a key of a cache.
  private func batch(id: UInt64, key: String, isClearing: Bool = false) -> WriteBatch {
    var batch = WriteBatch()
    batch.isClearing = isClearing
    batch.put(RecordKey(cacheID: id, userKey: key.utf8).bytes.span.bytes, [1].span.bytes)
    return batch
  }

  private func keys(of stream: AsyncStream<ChangeBuffer.Element>) async -> [String] {
    var found: [String] = []
    for await (_, change) in stream {
      found.append(
        change.keyCount == 0
          ? "*" : String(decoding: change.bytes[2..<change.keyCount], as: UTF8.self))
    }
    return found
  }

  @Test("A write asks nothing of the observers of other caches.")
  func manyObservers() async throws {
    let store = Store.inMemory()
    let base = try store.cache("a", of: Int.self).core
    let observations = Observations()
    let others = (0..<1000).map { CountedCache(base, id: 10 + $0) }
    let streams = others.map { observations.stream(of: $0, key: nil, buffered: 1) }
    let observed = observations.stream(
      of: CountedCache(base, id: 5), key: Array("x".utf8), buffered: 8)
    func idReads() -> Int { others.reduce(0) { $0 + $1.idReads.load(ordering: .relaxed) } }
    let before = idReads()
    for id: UInt64 in [4, 5] {
      for key in ["x", "y"] { observations.notify(batch(id: id, key: key), Commit(sequence: 1)) }
    }
    #expect(idReads() == before)
    observations.finish()
    #expect(await keys(of: observed) == ["x"])
    #expect(await keys(of: streams[0]) == [])
  }

  @Test("A write takes no longer for observers of keys of its cache that it does not write.")
  func manyObservedKeys() throws {
    let store = Store.inMemory()
    let cache = try store.cache("a", of: Int.self).core
    func time(observers count: Int) -> Double {
      let observations = Observations()
      let streams = (0..<count).map {
        observations.stream(of: cache, key: Array("key \($0)".utf8), buffered: 1)
      }
      defer { withExtendedLifetime(streams) { observations.finish() } }
      let batch = batch(id: cache.id, key: "x")
      return threadTime {
        for _ in 0..<200 { observations.notify(batch, Commit(sequence: 1)) }
      }
    }
    let (few, many) = (time(observers: 10), time(observers: 10_000))
    #expect(many < 10 * few, "\(few) s and \(many) s")
  }

  @Test("An observer that comes between the commit of a clear and the new id sees what follows.")
  func observerDuringClear() async throws {
    let store = Store.inMemory()
    let base = try store.cache("a", of: Int.self).core
    for isObserved in [false, true] {
      let observations = Observations()
      let cache = CountedCache(base, id: 5)
      let early = isObserved ? observations.stream(of: cache, key: nil, buffered: 8) : nil
      observations.expectClear(of: [Observations.Renumbering(from: [5], to: 6)])
      observations.notify(batch(id: 6, key: "x", isClearing: true), Commit(sequence: 1))
      observations.expectClear(of: [])
      let late = observations.stream(of: cache, key: nil, buffered: 8)
      observations.follow(cache, to: 6) { cache.id = 6 }
      observations.notify(batch(id: 6, key: "y"), Commit(sequence: 1))
      observations.notify(batch(id: 5, key: "z"), Commit(sequence: 1))
      observations.finish()
      if let early { #expect(await keys(of: early) == ["*", "x", "y"]) }
      #expect(await keys(of: late) == (isObserved ? ["y"] : ["*", "y"]))
    }
  }

  @Test("Observers of one key and of all keys come and go without each other.")
  func comingAndGoing() async throws {
    let store = Store.inMemory()
    let cache = try store.cache("a", of: Int.self)
    let kept = (cache.changes(for: "x"), cache.changes())
    for round in 0..<3 {
      do {
        let gone = [cache.changes(for: "x"), cache.changes(for: "y"), cache.changes()]
        try cache.save(round, for: "x")
        _ = gone
      }
      try cache.save(round, for: "y")
    }
    try store.drop(cache: "a")
    #expect(store.context.observations.isEmpty)
    #expect(await read(kept.0) == ["x=0", "x=1", "x=2", "* cleared"])
    #expect(await read(kept.1).count == 7)
  }
}
