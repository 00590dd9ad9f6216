import LarderEngineSupport
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// While writes fail, no call gets or keeps a value that an acknowledged change has ended.
@Suite(.timeLimit(.minutes(10))) struct LoadFaultTests {
  private static let keyCount = 3

  /// The source's versions of values, and the least versions that the store may return.
  private final class World: Sendable {
    private struct State {
      var source = [Int](repeating: 0, count: keyCount)
      var floor = [Int](repeating: 0, count: keyCount)
      var wrong: [String] = []
    }

    private let state = Mutex(State())
    private let changing = Mutex(())

    var wrong: [String] { state.withLock { $0.wrong } }

    func source(_ key: Int) -> Int { state.withLock { $0.source[key] } }

    func floor(_ key: Int) -> Int { state.withLock { $0.floor[key] } }

    /// Begins new versions in the source, and ends the older ones in the store by `change`.
    ///
    /// `change` changes `keys`, and is passed the version of the last one.
    func change(_ keys: [Int], by change: (_ version: Int) throws -> Void) throws {
      try changing.withLock { _ in
        let versions = state.withLock { state in
          for key in keys { state.source[key] += 1 }
          return state.source
        }
        try change(versions[keys[keys.count - 1]])
        state.withLock { state in for key in keys { state.floor[key] = versions[key] } }
      }
    }

    func check(_ version: Int?, of key: Int, atLeast floor: Int, _ at: String) {
      guard let version, version < floor else { return }
      state.withLock { $0.wrong.append("\(key): \(version), not \(floor), \(at)") }
    }
  }

  private func open(
    _ disk: SimulatedDisk, memoryBytes: Int
  ) throws -> (store: Store, cache: Cache<Int, Int>) {
    var options = Store.Options()
    options.sweepInterval = nil
    options.memoryBytes = memoryBytes
    let store = try Store(on: disk, options: options)
    return (store, try store.cache("cache", of: Int.self, keyedBy: Int.self))
  }

  /// Reads, loads and ends values.
  private func run(
    _ task: Int, in store: Store, _ cache: Cache<Int, Int>, _ world: World, seed: UInt64
  ) async throws {
    var random = SplitMix64(seed: seed)
    for step in 0..<40 {
      let key = Int(random.next() % UInt64(Self.keyCount))
      let floor = world.floor(key)
      let tag = "tag \(key)"
      let at = "task \(task), step \(step)"
      let load: Cache<Int, Int>.Load = { _ in
        let version = world.source(key)
        await Task.yield()
        return .value(version, tags: [tag])
      }
      let durability: Durability? = random.next() % 3 == 0 ? .powerLoss : nil
      do {
        switch random.next() % 10 {
        case 0, 1, 2, 3:
          let version = try await cache.value(for: key, load: load)
          world.check(version, of: key, atLeast: floor, at)
        case 4:
          world.check(try cache.value(for: key), of: key, atLeast: floor, at)
        case 5:
          let version = try await cache.refresh(key, load: load)?.value
          world.check(version, of: key, atLeast: floor, "\(at), refreshed")
        case 6: try world.change([key]) { _ in try cache.remove(key) }
        case 7:
          try world.change([key]) { _ in try store.invalidate(tag: tag) }
        case 8 where step % 5 == 0:
          try world.change(Array(0..<Self.keyCount)) { _ in try cache.removeAll() }
        default:
          try world.change([key]) { version in
            try cache.save(version, for: key, tags: [tag], durability: durability)
          }
        }
      } catch let error as StoreError where error.isWriteFailure {
        continue
      }
    }
  }

  @Test(
    "Loads and reads are right though a write fails, or all from then on.",
    arguments: [SimulatedDisk.Fault.eio, .shortWrite, .failedSync], [0, 1 << 20])
  func failingWrites(fault: SimulatedDisk.Fault, memoryBytes: Int) async throws {
    var failures = 0
    for number in 1...40 {
      let disk = SimulatedDisk()
      var (store, cache) = try open(disk, memoryBytes: memoryBytes)
      disk.fail(inRound: number, fault, every: 5)
      let world = World()
      let (first, second) = (store, cache)
      try await withThrowingTaskGroup { group in
        for task in 0..<4 {
          group.addTask {
            try await self.run(task, in: first, second, world, seed: UInt64(number * 4 + task))
          }
        }
        try await group.waitForAll()
      }
      failures += disk.counts.failed
      disk.heal()
      // The first one may report a compaction that failed.
      do { try cache.save(0, for: -1) } catch { try cache.save(0, for: -1) }
      var found: [[Int?]] = []
      for _ in 0..<2 {
        let versions = try (0..<Self.keyCount).map { try cache.value(for: $0) }
        for (key, version) in versions.enumerated() {
          world.check(version, of: key, atLeast: world.floor(key), "at the end")
        }
        found.append(versions)
        try store.close()
        (store, cache) = try open(disk, memoryBytes: memoryBytes)
      }
      try store.close()
      #expect(found[0] == found[1], "\(fault) at \(number)")
      #expect(world.wrong == [], "\(fault) at \(number)")
    }
    #expect(failures > 20)
  }
}
