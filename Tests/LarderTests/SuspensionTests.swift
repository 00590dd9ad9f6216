import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A suspended store has no lock on its directory, refuses calls, and goes on as it was.
@Suite(.timeLimit(.minutes(10))) struct SuspensionTests {
  /// Opens the store of a fixture a second time, as another process would.
  private func openElsewhere(_ fixture: Fixture) throws -> Store {
    var options = Store.Options()
    options.clock = fixture.clock
    return try Store(at: fixture.directory, options: options)
  }

  @Test(
    "Calls are refused while a store is suspended, and go on afterwards.",
    arguments: StoreKind.allCases)
  func refuses(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self, memory: .none)
    try cache.save(1, for: "a", tags: ["t"])
    try store.suspend()
    try store.suspend()
    let calls: [(String, () throws -> Void)] = [
      ("value", { _ = try cache.value(for: "a") }), ("save", { try cache.save(2, for: "a") }),
      ("remove", { try cache.remove("a") }), ("clear", { try cache.removeAll() }),
      ("update", { try cache.update("a") { $0 = 3 } }),
      ("scan", { _ = try cache.entries().next() }),
      ("tag", { try store.invalidate(tag: "t") }), ("flush", { try store.flush() }),
      ("sweep", { try store.sweep() }), ("open", { _ = try store.cache("b", of: Int.self) }),
      ("drop", { try store.drop(cache: "a") }),
      ("compact", { try store.context.engine.compact(EngineRange()) }),
      ("write", { try store.write { $0.save(2, for: "a", in: cache) } }),
    ]
    for (name, call) in calls {
      let error = #expect(throws: StoreError.self, "\(name)") { try call() }
      guard case .suspended? = error else {
        Issue.record("\(name): \(String(describing: error))")
        continue
      }
    }
    try store.resume()
    try store.resume()
    #expect(try cache.value(for: "a") == 1)
    try cache.save(2, for: "a")
    try fixture.reopen()
    if kind.isOnDisk {
      #expect(try fixture.store.cache("a", of: Int.self).value(for: "a") == 2)
    }
  }

  @Test(
    "A store that nobody opened goes on with its memory, cursors, observers and budgets.",
    arguments: [StoreKind.disk, .segments])
  func keepsState(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self, byteBudget: 1 << 20)
    for number in 0..<10 { try cache.save(number, for: "k\(number)") }
    #expect(try cache.value(for: "k0") == 0)
    let held = try #require(store.statistics.caches["a"]?.heldBytes)
    let changes = cache.changes()
    let cursor = try cache.entries()
    for number in 0..<3 { #expect(try cursor.next()?.entry.get().value == number) }
    try store.suspend()
    #expect(throws: StoreError.suspended) { try cache.value(for: "k0") }
    try store.resume()
    #expect(store.statistics.caches["a"]?.heldBytes == held)
    #expect(try cache.value(for: "k0") == 0)
    #expect(store.statistics.caches["a"]?.reads.memory == 1)
    for number in 3..<10 { #expect(try cursor.next()?.entry.get().value == number) }
    #expect(try cursor.next() == nil)
    try cache.save(11, for: "k1")
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.key == "k1")
    try cache.removeAll()
    #expect(try cache.value(for: "k0") == nil)
    #expect(store.statistics.caches["a"]?.heldBytes == 0)
  }

  @Test(
    "While it is suspended, another store can have the directory; then it can only be closed.",
    arguments: [StoreKind.disk, .segments])
  func changedMeanwhile(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    try cache.save(1, for: "a")
    #expect(try cache.value(for: "a") == 1)
    try fixture.store.suspend()
    let other = try openElsewhere(fixture)
    #expect(throws: StoreError.locked(pid: getpid())) { try fixture.store.resume() }
    let theirs = try other.cache("a", of: Int.self)
    #expect(try theirs.value(for: "a") == 1)
    try theirs.save(2, for: "a")
    // The text of the lock is the other's.
    #expect(throws: StoreError.locked(pid: getpid())) { try openElsewhere(fixture) }
    try other.close()
    for _ in 0..<2 {
      #expect(throws: StoreError.changedMeanwhile) { try fixture.store.resume() }
    }
    #expect(throws: StoreError.suspended) { try cache.value(for: "a") }
    try fixture.reopen()
    #expect(try fixture.store.cache("a", of: Int.self).value(for: "a") == 2)
  }

  @Test("Closing a suspended store leaves the directory to the store that has it.")
  func closing() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.cache("a", of: Int.self).save(1, for: "a")
    try fixture.store.suspend()
    let other = try openElsewhere(fixture)
    try fixture.store.close()
    let error = #expect(throws: StoreError.self) { try openElsewhere(fixture) }
    guard case .locked(getpid()) = error else {
      Issue.record("\(String(describing: error))"); return
    }
    #expect(try other.cache("a", of: Int.self).value(for: "a") == 1)
    #expect(throws: StoreError.closed) { try fixture.store.resume() }
    #expect(throws: StoreError.closed) { try fixture.store.suspend() }
    try other.close()
  }

  @Test("A directory that was moved, or replaced by another store, is not taken back.")
  func replaced() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self, memory: .none)
    try cache.save(1, for: "a")
    try fixture.store.suspend()
    let moved = fixture.directory.appendingPathExtension("moved")
    try FileManager.default.moveItem(at: fixture.directory, to: moved)
    defer {
      do { try FileManager.default.removeItem(at: moved) } catch { Issue.record(error) }
    }
    func expectGone(_ place: SourceLocation = #_sourceLocation) {
      let error = #expect(throws: StoreError.self, sourceLocation: place) {
        try fixture.store.resume()
      }
      guard case .io? = error else { Issue.record("\(String(describing: error))"); return }
    }
    expectGone()
    // A copy has the same CURRENT, and is another directory.
    try FileManager.default.copyItem(at: moved, to: fixture.directory)
    expectGone()
    try FileManager.default.removeItem(at: fixture.directory)
    try FileManager.default.moveItem(at: moved, to: fixture.directory)
    try fixture.store.resume()
    #expect(try cache.value(for: "a") == 1)
    try FileManager.default.createDirectory(at: moved, withIntermediateDirectories: false)
  }

  @Test("A store that cannot be opened stays suspended, and is resumed later.")
  func retries() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self, memory: .none)
    try cache.save(1, for: "a")
    try fixture.store.suspend()
    let current = try String(
      contentsOf: fixture.directory.appending(path: "CURRENT"), encoding: .utf8)
    let manifest = fixture.directory.appending(path: current.dropLast())
    let aside = fixture.directory.appending(path: "aside")
    try FileManager.default.moveItem(at: manifest, to: aside)
    for _ in 0..<2 {
      #expect(throws: StoreError.self) { try fixture.store.resume() }
      #expect(throws: StoreError.suspended) { try cache.value(for: "a") }
    }
    try FileManager.default.moveItem(at: aside, to: manifest)
    try fixture.store.resume()
    #expect(try cache.value(for: "a") == 1)
  }

  @Test("A load that ends while the store is suspended returns its value, which is not saved.")
  func loads() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("a", of: Int.self)
    let entry = try await cache.entry(for: "a") { _ in
      try store.suspend()
      return .value(1)
    }
    #expect(entry?.value == 1 && entry?.isSaved == false)
    guard case .suspended? = entry?.saveFailure as? StoreError else {
      Issue.record("\(String(describing: entry?.saveFailure))")
      return
    }
    await #expect(throws: StoreError.suspended) {
      try await cache.value(for: "b") { _ in .value(2) }
    }
    try store.resume()
    #expect(try cache.value(for: "a") == nil)
    #expect(try await cache.value(for: "a") { _ in .value(3) } == 3)
    #expect(try cache.value(for: "a") == 3)
  }

  @Test("Reads that restart lifetimes are written before the store is suspended.")
  func slides() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "a", of: Int.self, lifetime: .seconds(100), expiry: .sliding, memory: .none)
    try cache.save(1, for: "a")
    fixture.clock.advance(by: .seconds(60))
    #expect(try cache.value(for: "a") == 1)
    try fixture.store.suspend()
    try fixture.store.resume()
    fixture.clock.advance(by: .seconds(60))
    #expect(try cache.value(for: "a") == 1)
  }

  @Test("A store that is suspended again and again is swept as one that is closed.")
  func sweeps() throws {
    let fixture = try Fixture(.disk) { $0.sweepInterval = .seconds(3600) }
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    for hours in [1, 3, 5] {
      #expect(try fixture.rows(in: .records).count == 1, "\(hours)")
      try fixture.store.suspend()
      try fixture.store.resume()
      fixture.clock.advance(by: .seconds(7200))
    }
    #expect(try fixture.rows(in: .records).isEmpty)
  }

  @Test("Statistics are published only while the store has the directory.")
  func statistics() throws {
    let timer = HandTimer()
    let fixture = try Fixture(.disk) { options in
      options.publishesStatistics = true
      options.statisticsTrigger = timer.trigger
    }
    defer { fixture.end() }
    let cache = try fixture.store.cache("a", of: Int.self)
    func isPublished() -> Bool {
      FileManager.default.fileExists(
        atPath: fixture.directory.appending(path: "LARDER.statistics").path)
    }
    timer.fire()
    #expect(isPublished())
    try fixture.store.suspend()
    #expect(!isPublished())
    timer.fire()
    #expect(!isPublished())
    try fixture.store.resume()
    try cache.save(1, for: "a")
    timer.fire()
    #expect(isPublished())
  }

  @Test("A store that is open for reading only cannot be suspended.")
  func readOnly() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.cache("a", of: Int.self).save(1, for: "a")
    var options = Store.Options()
    options.access = .readOnly
    options.clock = fixture.clock
    let reader = try Store(at: fixture.directory, options: options)
    let error = #expect(throws: StoreError.self) { try reader.suspend() }
    guard case .readOnly? = error else { Issue.record("\(String(describing: error))"); return }
    #expect(try reader.cache("a", of: Int.self).value(for: "a") == 1)
    // Reading a suspended store changes nothing that resuming would notice.
    try fixture.store.suspend()
    let second = try Store(at: fixture.directory, options: options)
    #expect(try second.cache("a", of: Int.self).value(for: "a") == 1)
    try fixture.store.resume()
    try second.close()
    try reader.close()
  }

  @Test("A collection of segments and a disk budget go on after a suspension.")
  func backgroundWork() async throws {
    var options = Store.Options()
    options.diskBudget = 8 << 20
    options.writeBufferBytes = 64 << 10
    options.memoryBytes = 0
    let directory = try TemporaryDirectory()
    let store = try Store(at: URL(filePath: directory.path), options: options)
    let cache = try store.cache("a", of: Data.self)
    for round in 0..<4 {
      for number in 0..<100 {
        var random = SplitMix64(seed: UInt64(round * 100 + number))
        let bytes = Data((0..<40_000).map { _ in UInt8.random(in: 0...255, using: &random) })
        try cache.save(bytes, for: "\(round)-\(number)")
      }
      try store.suspend()
      try store.resume()
    }
    try await store.waitUntilIdle()
    let disk = store.statistics.disk
    #expect(disk.evictions > 0 && disk.byteCount < 8 << 20)
    try store.close()
  }

  @Test(
    "Writers, readers and scans of 16 threads lose nothing while a store is suspended often.",
    arguments: [StoreKind.disk, .segments])
  func races(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let race = SuspensionRace(
      fixture.store, try fixture.store.cache("a", of: Int.self, keyedBy: Int.self))
    onThreads(17) { thread in
      do {
        if thread < 16 { try race.write(as: thread) } else { try race.suspendOften() }
      } catch {
        Issue.record(error)
      }
    }
    try fixture.reopen()
    let cache = try fixture.store.cache("a", of: Int.self, keyedBy: Int.self)
    for (thread, number) in race.saved.withLock({ $0 }) {
      #expect(try cache.value(for: thread) == number)
    }
    #expect(race.refusals.load(ordering: .relaxed) > 0)
  }
}

extension SuspensionTests {
  @Test(
    "Sweeps, clears, tags, ranges, migrations, backups and compactions are refused, or done.",
    arguments: [StoreKind.disk, .segments])
  func others(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let old = try fixture.store.cache("old", of: Int.self, keyedBy: Int.self)
    for number in 0..<2000 { try old.save(number, for: number) }
    try fixture.reopen()
    let store = fixture.store
    let schema = Schema<Int>(version: 2).reading(1, as: Int.self) { $0 }
    let migrated = try store.cache("old", of: Int.self, keyedBy: Int.self, schema: schema)
    let cache = try store.cache("a", of: Int.self, keyedBy: Int.self)
    let isEnding = Flag()
    let done = Atomic(0)
    let target = fixture.directory.appendingPathExtension("backup")
    let calls: [@Sendable () throws -> Void] = [
      { _ = try store.sweep() }, { try cache.removeAll() }, { try store.invalidate(tag: "t") },
      { try cache.remove(in: .from(3)) }, { _ = try store.migrate(migrated) },
      {
        try store.backup(to: target)
        try FileManager.default.removeItem(at: target)
      }, { try store.context.engine.compact(EngineRange()) },
      { try store.context.engine.collectSegments(.complete) },
      { for number in 0..<20 { try cache.save(number, for: number, tags: ["t"]) } },
    ]
    onThreads(calls.count + 1) { thread in
      do {
        guard thread < calls.count else {
          defer { isEnding.raise() }
          for _ in 0..<25 {
            try store.suspend()
            try store.resume()
            _ = try migrated.count()
          }
          return
        }
        while !isEnding.isRaised {
          do {
            try calls[thread]()
            done.add(1, ordering: .relaxed)
          } catch StoreError.suspended {
            continue
          }
        }
      } catch {
        Issue.record(error, "call \(thread)")
      }
    }
    #expect(done.load(ordering: .relaxed) > 0)
    #expect(try store.contents().values.allSatisfy { $0.isComplete && $0.unreadable.entries == 0 })
    for number in stride(from: 0, to: 2000, by: 7) {
      #expect(try migrated.value(for: number) == number)
    }
  }
}

/// A store that one thread suspends and resumes, while others save and read.
private final class SuspensionRace: Sendable {
  private let store: Store
  private let cache: Cache<Int, Int>
  /// The last number that each thread has saved.
  let saved = Mutex<[Int: Int]>([:])
  let refusals = Atomic<Int>(0)
  private let isEnding = Atomic<Bool>(false)

  init(_ store: Store, _ cache: Cache<Int, Int>) { (self.store, self.cache) = (store, cache) }

  func suspendOften() throws {
    defer { isEnding.store(true, ordering: .relaxed) }
    for _ in 0..<50 {
      try store.suspend()
      try store.resume()
      // A while for the others.
      _ = try cache.count()
    }
  }

  func write(as thread: Int) throws {
    var number = 0
    while !isEnding.load(ordering: .relaxed) {
      number += 1
      do {
        try cache.save(number, for: thread)
        saved.withLock { $0[thread] = number }
        #expect(try read(thread, byScan: number.isMultiple(of: 2)) == number)
      } catch StoreError.suspended {
        refusals.add(1, ordering: .relaxed)
      }
    }
  }

  private func read(_ thread: Int, byScan: Bool) throws -> Int? {
    guard byScan else { return try cache.value(for: thread) }
    return try cache.entries(in: .from(thread)).next()?.entry.get().value
  }
}
