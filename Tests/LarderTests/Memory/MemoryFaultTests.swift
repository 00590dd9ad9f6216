import Foundation
import LarderEngineSupport
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// While writes fail, reads return what the disk holds, from memory and of invalidated tags, too.
@Suite struct MemoryFaultTests {
  private func open(
    _ disk: SimulatedDisk, separated: Bool
  ) throws -> (store: Store, cache: Cache<Int, Int>) {
    var options = Store.Options()
    options.sweepInterval = nil
    options.memoryBytes = 1 << 20
    options.advanced.separatedValueBytes = separated ? 1 : nil
    let store = try Store(on: disk, options: options)
    return (store, try store.cache("cache", of: Int.self, keyedBy: Int.self))
  }

  /// What the keys of one thread may hold: several values once a write has failed.
  private struct Keys {
    var states: [Int: Set<Int?>] = [:]
    var wrong: [String] = []

    mutating func save(_ value: Int, for key: Int, _ isAcknowledged: Bool) {
      states[key] = (isAcknowledged ? [] : states[key] ?? [nil]).union([value])
    }

    mutating func remove(_ key: Int, _ isAcknowledged: Bool) {
      states[key] = (isAcknowledged ? [] : states[key] ?? [nil]).union([nil])
    }

    mutating func check(_ found: Int?, for key: Int, _ at: String) {
      let states = states[key] ?? [nil]
      if !states.contains(found) { wrong.append("\(key): \(found as Any), not \(states), \(at)") }
    }
  }

  /// Whether a write was acknowledged.
  private static func isDone(_ write: () throws -> Void) throws -> Bool {
    do {
      try write()
      return true
    } catch let error as StoreError where error.isWriteFailure {
      return false
    }
  }

  /// Changes and reads the keys of one thread, which all have its tag.
  private func run(
    _ thread: Int, in store: Store, _ cache: Cache<Int, Int>, _ random: inout SplitMix64
  ) throws -> Keys {
    var keys = Keys()
    let tag = "tag \(thread)"
    for step in 0..<60 {
      let key = thread * 100 + Int(random.next() % 5)
      switch random.next() % 10 {
      case 0:
        keys.remove(key, try Self.isDone { try cache.remove(key) })
      case 1:
        let isDone = try Self.isDone { try store.invalidate(tag: tag) }
        for key in Array(keys.states.keys) { keys.remove(key, isDone) }
      case 2, 3, 4:
        keys.check(try cache.value(for: key), for: key, "step \(step)")
      case 5:
        var before: Int?
        let isDone = try Self.isDone {
          try cache.update(key) { value in
            before = value
            // A new entry would have no tag.
            if value != nil { value = step }
          }
        }
        keys.check(before, for: key, "update \(step)")
        if before != nil { keys.save(step, for: key, isDone) }
      default:
        let durability: Durability? = step % 7 == 0 ? .powerLoss : nil
        keys.save(
          step, for: key,
          try Self.isDone { try cache.save(step, for: key, tags: [tag], durability: durability) })
      }
    }
    return keys
  }

  @Test(
    "Reads are right though a write fails, or all from then on.",
    arguments: [SimulatedDisk.Fault.eio, .shortWrite, .failedSync], [false, true])
  func failingWrites(fault: SimulatedDisk.Fault, separated: Bool) throws {
    var failures = 0
    for number in 1...40 {
      let disk = SimulatedDisk()
      var (store, cache) = try open(disk, separated: separated)
      disk.fail(inRound: number, fault, every: 5)
      let ended = Mutex<[Keys]>([])
      let (first, second) = (store, cache)
      onThreads(4) { thread in
        var random = SplitMix64(seed: UInt64(number * 4 + thread))
        do {
          let keys = try self.run(thread, in: first, second, &random)
          ended.withLock { $0.append(keys) }
        } catch {
          Issue.record(error)
        }
      }
      failures += disk.counts.failed
      disk.heal()
      // The first one may report a compaction that failed.
      if try !Self.isDone({ try cache.save(1, for: -1) }) { try cache.save(1, for: -1) }
      var keys = ended.withLock { $0 }
      var inMemory: [Int: Int?] = [:]
      for index in keys.indices {
        for key in keys[index].states.keys {
          let value = try cache.value(for: key)
          inMemory[key] = value
          keys[index].check(value, for: key, "at the end")
        }
        #expect(keys[index].wrong == [], "\(fault) at \(number)")
      }
      try store.close()
      (store, cache) = try open(disk, separated: separated)
      for (key, value) in inMemory {
        #expect(try cache.value(for: key) == value, "\(fault) at \(number), \(key)")
      }
      try store.close()
    }
    #expect(failures > 20)
  }
}
