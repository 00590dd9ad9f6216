import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// A store keeps its files under a budget: it collects, compacts and evicts in the background.
@Suite(.timeLimit(.minutes(30))) final class DiskBudgetTests {
  private static let budget = 4 << 20

  private let place: TemporaryDirectory

  init() throws { place = try TemporaryDirectory() }

  private func open(
    _ configure: (inout Store.Options) -> Void = { _ in }
  ) throws -> (store: Store, cache: Cache<Int, Data>) {
    var options = Store.Options()
    options.diskBudget = Self.budget
    configure(&options)
    let store = try Store(at: URL(filePath: place.path("store")), options: options)
    return (store, try store.cache("c", of: Data.self, keyedBy: Int.self, coder: .bytes))
  }

  /// Waits until the files are small enough: a compaction of LevelDB's own, which nobody waits for,
  /// has the new tables beside the old ones until it ends.
  private func expectFilesInBudget(of store: Store) async throws {
    try await eventually("the files are within the budget") {
      try store.engine.storedBytes() <= Self.budget
    }
  }

  /// Bytes that do not compress, different for each number.
  private static func value(_ number: Int, _ count: Int) -> Data {
    var random = SplitMix64(seed: UInt64(number))
    return Data(random.bytes(count))
  }

  @Test(
    "Files stay under the budget while new values come, and values that are read stay.",
    arguments: [1000, 20_000])
  func newValues(bytes: Int) async throws {
    let (store, cache) = try open { $0.memoryBytes = 0 }
    let read = 200_000 / bytes
    for number in 0..<read { try cache.save(Self.value(number, bytes), for: number) }
    var largest = 0
    for number in read..<(5 * Self.budget / bytes) {
      try cache.save(Self.value(number, bytes), for: number)
      _ = try cache.value(for: number % read)
      if number % 50 == 0 {
        try await store.waitUntilIdle()
        largest = max(largest, try store.engine.storedBytes())
      }
    }
    try await store.waitUntilIdle()
    // While LevelDB rewrites a table, the new ones are there beside the old ones; here, that can be
    // all of them.
    #expect(largest <= 2 * Self.budget)
    let left = try cache.count()
    // Not much less than there is room for.
    #expect(left * bytes > Self.budget / 3 && left * bytes < Self.budget)
    var kept = 0
    for number in 0..<read where try cache.value(for: number) == Self.value(number, bytes) {
      kept += 1
    }
    #expect(kept == read)
    let disk = store.statistics.disk
    #expect(disk.overruns > 0 && disk.compactions >= disk.evictions && disk.evictions > 0)
    #expect(disk.byteCount <= Self.budget)
    #expect(store.statistics.caches["c"]?.deletions.storeBudget.entries ?? 0 > 0)
    try store.close()
  }

  @Test(
    "Values that are saved again and again are not evicted: their room is given back.",
    arguments: [1000, 20_000])
  func overwriting(bytes: Int) async throws {
    let (store, cache) = try open()
    let count = Self.budget / 3 / bytes
    for number in 0..<(20 * count) {
      try cache.save(Self.value(number, bytes), for: number % count)
      // So that a slow machine does not measure what is saved during a compaction.
      if number % (100_000 / bytes) == 0 { try await store.waitUntilIdle() }
    }
    try await store.waitUntilIdle()
    try await expectFilesInBudget(of: store)
    #expect(try cache.count() == count)
    #expect(store.statistics.disk.evictions == 0)
    try store.close()
  }

  @Test("Entries that compress well may have more bytes than the budget.")
  func compressible() async throws {
    let (store, cache) = try open()
    let count = 3 * Self.budget / 3000
    for number in 0..<count {
      try cache.save(Self.value(number, 100) + Data(count: 3000), for: number)
      if number % 20 == 0 { try await store.waitUntilIdle() }
    }
    try await store.waitUntilIdle()
    #expect(try cache.count() == count)
    #expect(store.statistics.disk.evictions == 0)
    try store.close()
  }

  @Test("A store that is too large when it is opened becomes smaller after its first write.")
  func opening() async throws {
    var (store, cache) = try open { $0.diskBudget = nil }
    for number in 0..<800 { try cache.save(Self.value(number, 20_000), for: number) }
    try store.close()
    (store, cache) = try open()
    #expect(try store.engine.storedBytes() > 3 * Self.budget)
    var unused = DiskStatistics()
    unused.budget = Self.budget
    #expect(store.statistics.disk == unused)
    let changes = cache.changes()
    try cache.save(Self.value(0, 8), for: -1)
    try await store.waitUntilIdle()
    try await expectFilesInBudget(of: store)
    try store.close()
    var evicted = 0
    for await change in changes {
      switch change.kind {
      case .evicted: evicted += 1
      case .missed(let count): evicted += count
      default: break
      }
    }
    #expect(evicted > 500)
    (store, cache) = try open()
    #expect(
      try (0..<800).allSatisfy { number in
        try cache.value(for: number).map { $0 == Self.value(number, 20_000) } ?? true
      })
    try store.close()
  }

  @Test("No entry is evicted for the files that only a cursor keeps.", arguments: [400, 20_000])
  func cursor(bytes: Int) async throws {
    var (store, cache) = try open { $0.diskBudget = nil }
    let count = 2 * Self.budget / bytes
    for number in 0..<count { try cache.save(Self.value(number, bytes), for: number) }
    try store.close()
    (store, cache) = try open()
    var cursor = Optional(try cache.entries())
    for number in count..<(2 * count) { try cache.save(Self.value(number, bytes), for: number) }
    try await store.waitUntilIdle()
    #expect(try store.engine.storedBytes() > 2 * Self.budget)
    #expect(store.statistics.disk.evictions > 0)
    let left = try cache.count()
    #expect(left * bytes > Self.budget / 2 && left * bytes < Self.budget)
    #expect(try cursor?.next() != nil)
    // Once the cursor is gone, the next work deletes the files.
    cursor = nil
    for number in 0..<count { try cache.save(Self.value(number, bytes), for: number) }
    try await store.waitUntilIdle()
    try await expectFilesInBudget(of: store)
    try store.close()
  }

  @Test("Entries that cannot be evicted do not keep a thread at work.")
  func stuck() async throws {
    var (store, cache) = try open { $0.diskBudget = nil }
    for number in 0..<400 { try cache.save(Self.value(number, 20_000), for: number) }
    // As if a later version had written them: a flag that is not known.
    var write = WriteBatch()
    let cursor = try store.engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
    while try cursor.next() {
      cursor.withEntry { key, value in
        var changed = [UInt8](value)
        changed[3] |= 0x80
        write.putSeparable(key, stamp: Record.stamp) { buffer in
          buffer.append(changed.span.bytes)
          return changed.count - Record.headerBytes
        }
      }
    }
    try store.engine.write(&write, synced: false)
    try store.close()
    (store, cache) = try open()
    for number in 0..<300 {
      try cache.save(Self.value(number, 10_000), for: 1000 + number)
      try await store.waitUntilIdle()
    }
    // Not one for each 13 saves, which are a 32nd of the budget.
    #expect(store.statistics.disk.overruns < 10)
    #expect(try store.engine.storedBytes() > Self.budget)
    try store.close()
  }

  @Test("With a budget for entries, too, both hold.")
  func both() async throws {
    let (store, cache) = try open { $0.byteBudget = 500_000 }
    for number in 0..<2000 {
      try cache.save(Self.value(number, 10_000), for: number)
      if number % 50 == 0 { try await store.waitUntilIdle() }
    }
    try await store.waitUntilIdle()
    #expect(store.statistics.caches["c"]?.heldBytes ?? .max <= 500_000)
    try await expectFilesInBudget(of: store)
    try store.close()
  }

  @Test("On a disk with three times the budget, no save finds the disk full.")
  func smallDisk() async throws {
    let disk = SimulatedDisk()
    disk.setCapacity(UInt64(3 * Self.budget))
    var options = Store.Options()
    options.diskBudget = Self.budget
    let store = try Store(on: disk, options: options)
    let cache = try store.cache("c", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for number in 0..<4000 { try cache.save(Self.value(number % 500, 10_000), for: number) }
    try await store.waitUntilIdle()
    #expect(try cache.count() > 100)
    try store.close()
  }

  @Test("If a store is closed while eight threads save, each entry that is left can be read.")
  func closing() async throws {
    for round in 0..<4 {
      let (store, cache) = try open { $0.memoryBytes = 0 }
      await withTaskGroup(of: Void.self) { group in
        for thread in 0..<8 {
          group.addTask {
            for number in 0..<100 {
              do {
                try cache.save(Self.value(number, 10_000), for: thread * 1000 + number)
              } catch StoreError.closed {
                return
              } catch {
                Issue.record(error)
              }
              if thread == 0, number == 30 + 20 * round {
                do { try store.close() } catch { Issue.record(error) }
              }
            }
          }
        }
      }
      try store.close()
    }
    let (store, cache) = try open()
    let entries = try cache.entries()
    while let item = try entries.next() {
      #expect(try item.entry.get().value == Self.value(item.key % 1000, 10_000))
    }
    try store.close()
  }

  @Test("A clock of the program may close the store while it evicts for its files.")
  func clockCloses() async throws {
    var (store, cache) = try open { $0.diskBudget = nil }
    for number in 0..<800 { try cache.save(Self.value(number, 20_000), for: number) }
    try store.close()
    let clock = CallingClock()
    (store, cache) = try open { $0.clock = clock }
    try cache.save(Self.value(0, 8), for: -1)
    clock.call = { [weak store] in
      // Of any thread, also the one that evicts.
      do { try store?.close() } catch { Issue.record(error) }
    }
    do {
      try await store.waitUntilIdle()
    } catch StoreError.closed {
      // It was closed.
    }
    clock.call = nil
    try store.close()
  }

  @Test("A store in memory and one that only reads measure nothing.")
  func others() async throws {
    var options = Store.Options()
    options.diskBudget = Self.budget
    let memory = Store.inMemory(options: options)
    let words = try memory.cache("c", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for number in 0..<300 { try words.save(Self.value(number, 20_000), for: number) }
    #expect(try words.count() == 300)
    #expect(memory.statistics.disk == DiskStatistics())
    var (store, _) = try open()
    try store.close()
    (store, _) = try open { $0.access = .readOnly }
    #expect(store.context.diskBudget == nil)
    try store.close()
  }
}

/// The system's clock, which calls something at each reading of the date.
private final class CallingClock: WallClock, @unchecked Sendable {
  private let lock = NSLock()
  private var closure: (@Sendable () -> Void)?

  var call: (@Sendable () -> Void)? {
    get { lock.withLock { closure } }
    set { lock.withLock { closure = newValue } }
  }

  func now() -> Date {
    call?()
    return SystemClock().now()
  }

  func uptime() -> Duration { SystemClock().uptime() }
}
