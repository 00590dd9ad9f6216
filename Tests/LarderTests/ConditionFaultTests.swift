import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// A change with a condition whose write failed is not made a second time.
@Suite struct ConditionFaultTests {
  /// The closure is called again if the write of the call before has taken effect though it failed,
  /// but is never passed its own value.
  @Test(
    "An update whose write fails is not made on top of itself.",
    arguments: [SimulatedDisk.Fault.shortWrite, .eio, .failedSync])
  func notOnTopOfItself(fault: SimulatedDisk.Fault) throws {
    let again = Atomic(0)
    var failures = 0
    for number in 1...150 {
      let disk = SimulatedDisk()
      var options = Store.Options()
      options.sweepInterval = nil
      let store = try Store(on: disk, options: options)
      let cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
      disk.fail(inCalls: number, fault)
      onThreads(4) { thread in
        for step in 0..<30 {
          do {
            try cache.update(thread, durability: .powerLoss) { value in
              if value == step { again.add(1, ordering: .relaxed) }
              value = step
            }
          } catch {
            #expect(error is StoreError)
          }
        }
      }
      failures += disk.counts.failed
      disk.heal()
      try store.close()
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
    var failures = 0
    for number in stride(from: 1, through: 200, by: 4) {
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
            try cache.save(step, for: thread)
            let isRemoved =
              try step.isMultiple(of: 2)
              ? cache.remove(thread) : cache.remove(thread, if: .present)
            if !isRemoved { wrong.add(1, ordering: .relaxed) }
          } catch {
            #expect(error is StoreError)
          }
        }
      }
      failures += disk.counts.failed
      disk.heal()
      try store.close()
    }
    #expect(wrong.load(ordering: .relaxed) == 0)
    #expect(failures > 10)
  }
}
