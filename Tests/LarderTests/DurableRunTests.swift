import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// What the work of `run(durability:)` has changed is durable once it returns, and not before.
@Suite(.timeLimit(.minutes(10))) struct DurableRunTests {
  private let disk = SimulatedDisk()

  private func open(
    _ disk: SimulatedDisk
  ) throws -> (store: Store, numbers: Cache<Int, Int>) {
    var engineOptions = LevelDBOptions()
    engineOptions.files = SimulatedFiles(disk)
    let store = try Store(
      engine: try LevelDBEngine(at: "/store", options: engineOptions), origin: .disk)
    return (store, try store.cache("numbers", of: Int.self, keyedBy: Int.self))
  }

  /// Opens the store after a power loss in which everything that was not synced is lost.
  private func openAfterPowerLoss() throws -> (store: Store, numbers: Cache<Int, Int>) {
    let replay = disk.replay()
    while replay.step() != nil {}
    return try open(replay.image(.nothingUnsynced))
  }

  private func keysAfterPowerLoss() throws -> [Int] {
    let (store, numbers) = try openAfterPowerLoss()
    defer { #expect(throws: Never.self) { try store.close() } }
    let cursor = try numbers.keys()
    var keys: [Int] = []
    while let key = try cursor.next() { keys.append(key) }
    return keys
  }

  @Test("What one task or many have changed survives a power loss.")
  func powerLoss() async throws {
    let (store, numbers) = try open(disk)
    for key in 0..<20 {
      try await store.run(durability: .powerLoss) { try numbers.save(key, for: key) }
      try #require(try keysAfterPowerLoss() == Array(0...key))
    }
    try await store.run(durability: .processCrash) { try numbers.save(0, for: -1) }
    #expect(try keysAfterPowerLoss().first == 0)
    try await withThrowingTaskGroup { group in
      for task in 1...20 {
        group.addTask {
          for key in (task * 100)..<(task * 100 + 20) {
            let saved = try await store.run(durability: .powerLoss) {
              try numbers.save(key, for: key)
              return key
            }
            #expect(saved == key)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try keysAfterPowerLoss().count == 1 + 20 + 400)
    try store.close()
  }

  @Test("A task returns after its flush, and tasks that come during it share the next one.")
  func sharedFlush() async throws {
    let engine = HeldFlushEngine()
    let store = Store(inMemory: engine, options: Store.Options())
    let numbers = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let returned = Watched<[Int]>([])
    func save(_ number: Int) -> Task<Void, any Error> {
      Task {
        try await store.run(durability: .powerLoss) { try numbers.save(number, for: number) }
        returned.change { $0.append(number) }
      }
    }
    let first = save(0)
    await engine.flushes.wait { $0.count == 1 }
    #expect(try numbers.value(for: 0) == 0, "the change was not made before the flush")
    let others = (1...200).map { save($0) }
    await eventually("200 tasks wait") { store.groupFlush.waitingTasks == 200 }
    #expect(try numbers.values(for: Array(0...200)) == Array(0...200))
    #expect(returned.read { $0.isEmpty })

    engine.flushes.read { $0[0] }.raise()
    try await first.value
    await engine.flushes.wait { $0.count == 2 }
    #expect(store.groupFlush.waitingTasks == 0 && returned.read { $0 == [0] })
    engine.flushes.read { $0[1] }.raise()
    for task in others { try await task.value }
    #expect(engine.flushes.read { $0.count } == 2)
  }

  @Test("If a flush fails, each task that waits for it throws, and the next one succeeds.")
  func failedFlush() async throws {
    let engine = HeldFlushEngine()
    let store = Store(inMemory: engine, options: Store.Options())
    let holder = Task { try await store.run(durability: .powerLoss) {} }
    await engine.flushes.wait { $0.count == 1 }
    let failing = (0..<20).map { _ in Task { try await store.run(durability: .powerLoss) {} } }
    await eventually("20 tasks wait") { store.groupFlush.waitingTasks == 20 }
    engine.flushes.read { $0[0] }.raise()
    try await holder.value
    await engine.flushes.wait { $0.count == 2 }
    engine.failsNext.change { $0 = true }
    engine.flushes.read { $0[1] }.raise()
    for task in failing {
      await #expect { try await task.value } throws: {
        if case StoreError.io("the disk is gone") = $0 { true } else { false }
      }
    }
    let next = Task { try await store.run(durability: .powerLoss) { 7 } }
    await engine.flushes.wait { $0.count == 3 }
    engine.flushes.read { $0[2] }.raise()
    #expect(try await next.value == 7)
  }

  @Test("A sync that fails is thrown, and what was changed is there and durable later.")
  func failedSync() async throws {
    let (store, numbers) = try open(disk)
    try await store.run(durability: .powerLoss) { try numbers.save(1, for: 1) }
    disk.fail(atCall: disk.counts.syncs + 1, .failedSync, of: .syncs)
    await #expect(throws: StoreError.self) {
      try await store.run(durability: .powerLoss) { try numbers.save(2, for: 2) }
    }
    #expect(try numbers.value(for: 2) == 2)
    try await store.run(durability: .powerLoss) { try numbers.save(3, for: 3) }
    #expect(try keysAfterPowerLoss() == [1, 2, 3])
    try store.close()
  }

  private func pictures(of store: Store) throws -> Cache<Int, Data> {
    try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
  }

  private final class Keys: Sendable {
    private let keys = Mutex<Set<Int>>([])

    var all: Set<Int> { keys.withLock { $0 } }

    func insert(_ key: Int) { keys.withLock { _ = $0.insert(key) } }
  }

  @Test("On a full disk, what was acknowledged is durable, and removals make room.")
  func fullDisk() async throws {
    disk.setCapacity(16 << 20)
    let (store, numbers) = try open(disk)
    let cache = try pictures(of: store)
    var random = SplitMix64(seed: 1)
    let (picture, saved) = (Data(random.bytes(5000)), Keys())
    // Each task saves until the disk is full.
    let errors = await withTaskGroup { group in
      for task in 0..<8 {
        group.addTask { @Sendable () -> (any Error)? in
          for key in (task * 10_000)..<((task + 1) * 10_000) {
            do {
              try await store.run(durability: .powerLoss) { try cache.save(picture, for: key) }
            } catch {
              return error
            }
            saved.insert(key)
          }
          return nil
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    for error in errors { #expect(throws: StoreError.self) { try error.map { throw $0 } } }
    #expect(errors.contains { if case StoreError.diskFull? = $0 { true } else { false } })
    #expect(saved.all.count > 100)
    let survivor = try openAfterPowerLoss()
    for key in saved.all {
      #expect(try pictures(of: survivor.store).value(for: key) == picture)
    }
    try survivor.store.close()

    try await store.run(durability: .powerLoss) { try cache.removeAll() }
    try await store.run(durability: .powerLoss) { try numbers.save(1, for: 1) }
    #expect(try keysAfterPowerLoss() == [1])
    try store.close()
  }

  @Test("The error of the work is thrown without a flush.")
  func failedWork() async throws {
    struct Refusal: Error {}
    let engine = HeldFlushEngine()
    let store = Store(inMemory: engine, options: Store.Options())
    await #expect(throws: Refusal.self) {
      try await store.run(durability: .powerLoss) { throw Refusal() }
    }
    #expect(engine.flushes.read { $0.isEmpty })
  }

  @Test("A store that is closed or suspended between the work and its flush throws that.")
  func closedBetween() async throws {
    for isSuspended in [true, false] {
      let fixture = try Fixture(.disk)
      defer { fixture.end() }
      let store = fixture.store
      let numbers = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
      do {
        try await store.run(durability: .powerLoss) {
          try numbers.save(1, for: 1)
          if isSuspended { try store.suspend() } else { try store.close() }
        }
        Issue.record("it was flushed")
      } catch StoreError.suspended where isSuspended {
        try store.resume()
      } catch StoreError.closed where !isSuspended {
        try fixture.reopen()
      }
      let again = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
      #expect(try again.value(for: 1) == 1)
    }
  }

  @Test("A store for reading only does the work, and throws that it cannot flush.")
  func readOnly() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.cache("numbers", of: Int.self).save(1, for: "a")
    try fixture.store.close()
    var options = Store.Options()
    options.access = .readOnly
    options.clock = fixture.clock
    let reader = try Store(at: fixture.directory, options: options)
    let numbers = try reader.cache("numbers", of: Int.self)
    let found = Watched<Int?>(nil)
    do {
      try await reader.run(durability: .powerLoss) {
        let value = try numbers.value(for: "a")
        found.change { $0 = value }
      }
      Issue.record("it was flushed")
    } catch StoreError.readOnly {
    }
    #expect(found.read { $0 } == 1)
    #expect(try await reader.run(durability: .processCrash) { try numbers.value(for: "a") } == 1)
    try reader.close()
  }

  @Test("Work of a cancelled task takes effect, and sees that the task is cancelled.")
  func cancelled() async throws {
    let (store, numbers) = try open(disk)
    let cancelled = Flag()
    let task = Task {
      cancelled.wait()
      return try await store.run(durability: .powerLoss) {
        try numbers.save(1, for: 1)
        return Task.isCancelled
      }
    }
    task.cancel()
    cancelled.raise()
    #expect(try await task.value)
    #expect(try keysAfterPowerLoss() == [1])
    try store.close()
  }

  @Test("Once the last call has returned, a store without other references is closed.")
  func lastReference() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    for round in 0..<20 {
      // It fails if the store of the round before still holds the directory.
      let store = try Store(at: place)
      let numbers = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
      try await withThrowingTaskGroup { group in
        for task in 0..<(round % 4 + 1) {
          group.addTask {
            try await store.run(durability: .powerLoss) { try numbers.save(round, for: task) }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

/// How long the leader of a group waits for others.
@Suite struct GatheringTests {
  @Test("A leader waits for as many as the last group had, while others come, three times.")
  func waits() {
    var gathering = Gathering()
    #expect(gathering.isAlone && gathering.wait(with: 1) == nil)
    gathering.didWrite(since: .monotonicNow, 8)
    #expect(!gathering.isAlone)
    // All are there.
    #expect(gathering.wait(with: 8) == nil)
    // The group has one task, and no other comes during its first wait.
    #expect(gathering.wait(with: 1) != nil)
    #expect(gathering.wait(with: 1) == nil)
    // One comes during each wait.
    #expect([1, 2, 3, 4].map { gathering.wait(with: $0) != nil } == [true, true, true, false])
    // All have come.
    #expect(gathering.wait(with: 1) != nil)
    #expect(gathering.wait(with: 8) == nil)
  }

  @Test("A wait ends when the last one comes.")
  func arrival() {
    var gathering = Gathering()
    // So that it would wait for 5 ms.
    gathering.didWrite(since: .monotonicNow - .seconds(1), 3)
    var arrived = 0
    for _ in 0..<100 {
      let wait = gathering.wait(with: 1)
      gathering.noteArrival(2)
      gathering.noteArrival(3)
      if wait?.end() == true { arrived += 1 }
      #expect(gathering.wait(with: 3) == nil)
    }
    #expect(arrived == 100)
  }
}

/// An engine in memory whose flushes wait for a flag each.
private final class HeldFlushEngine: ForwardingEngine {
  let base: any StorageEngine = InMemoryEngine()
  let flushes = Watched<[Flag]>([])
  let failsNext = Watched(false)

  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    if synced, batch.isEmpty {
      let flag = Flag()
      flushes.change { $0.append(flag) }
      flag.wait()
      let fails = failsNext.change { fails in
        defer { fails = false }
        return fails
      }
      if fails { throw .io("the disk is gone") }
    }
    return try base.write(&batch, synced: synced)
  }
}
