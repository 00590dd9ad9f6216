import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// A change with a condition whose write failed is not made a second time.
@Suite struct ConditionFaultTests {
  /// Lets four threads, each with a key of its own, call `body` on many disks, of which each fails
  /// at a later call than the one before.
  ///
  /// - Returns: The number of calls that failed.
  private func onFailingDisks(
    _ numbers: some Sequence<Int>, _ fault: SimulatedDisk.Fault,
    _ body: @escaping @Sendable (_ cache: Cache<Int, Int>, _ key: Int, _ step: Int) throws -> Void
  ) throws -> Int {
    var failures = 0
    for number in numbers {
      let disk = SimulatedDisk()
      var options = Store.Options()
      options.sweepInterval = nil
      options.durability = .powerLoss
      let store = try Store(on: disk, options: options)
      let cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
      disk.fail(inCalls: number, fault)
      onThreads(4) { thread in
        for step in 0..<30 {
          do {
            try body(cache, thread, step)
          } catch {
            #expect(error is StoreError)
          }
        }
      }
      failures += disk.counts.failed
      disk.heal()
      try store.close()
    }
    return failures
  }

  /// The closure is called again if the write of the call before has taken effect though it failed,
  /// but is never passed its own value.
  @Test(
    "An update whose write fails is not made on top of itself.",
    arguments: [SimulatedDisk.Fault.shortWrite, .eio, .failedSync])
  func notOnTopOfItself(fault: SimulatedDisk.Fault) throws {
    let again = Atomic(0)
    let failures = try onFailingDisks(1...150, fault) { cache, key, step in
      try cache.update(key) { value in
        if value == step { again.add(1, ordering: .relaxed) }
        value = step
      }
    }
    #expect(again.load(ordering: .relaxed) == 0)
    #expect(failures > 30)
  }

  /// The first write of a removal can take effect though it failed.
  ///
  /// A second one would find nothing to remove.
  @Test(
    "A removal whose write fails does not report that there was no entry.",
    arguments: [SimulatedDisk.Fault.shortWrite, .enospc])
  func removalsInDoubt(fault: SimulatedDisk.Fault) throws {
    let wrong = Atomic(0)
    let failures = try onFailingDisks(stride(from: 1, through: 200, by: 4), fault) {
      cache, key, step in
      try cache.save(step, for: key)
      let isRemoved =
        try step.isMultiple(of: 2) ? cache.remove(key) : cache.remove(key, if: .present)
      if !isRemoved { wrong.add(1, ordering: .relaxed) }
    }
    #expect(wrong.load(ordering: .relaxed) == 0)
    #expect(failures > 10)
  }
}
