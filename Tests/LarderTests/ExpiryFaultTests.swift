import LarderEngineSupport
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// Whatever fails while entries are saved, a later sweep deletes those that have expired, and no
/// others.
@Suite struct ExpiryFaultTests {
  private func open(
    _ disk: SimulatedDisk, _ clock: ManualClock, separated: Bool
  ) throws -> (store: Store, cache: Cache<Int, Int>) {
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = nil
    options.advanced.separatedValueBytes = separated ? 1 : nil
    let store = try Store(on: disk, options: options)
    return (
      store, try store.cache("cache", of: Int.self, keyedBy: Int.self, lifetime: .seconds(1000))
    )
  }

  /// Changes entries, of which those with even values expire soon.
  private func run(
    _ thread: Int, in store: Store, _ cache: Cache<Int, Int>, _ clock: ManualClock,
    _ random: inout SplitMix64
  ) throws {
    for step in 0..<60 {
      let key = thread * 100 + Int(random.next() % 20)
      do {
        switch random.next() % 12 {
        case 0: try cache.remove(key)
        case 1: try cache.touch(key)
        case 2: try cache.update(key) { value in value = step }
        case 3: try store.sweep()
        case 4: clock.advance(by: .seconds(30))
        default:
          try cache.save(
            step, for: key, lifetime: step.isMultiple(of: 2) ? .seconds(50) : .seconds(100_000),
            durability: step % 5 == 0 ? .powerLoss : nil)
        }
      } catch let error as StoreError where error.isWriteFailure {
        continue
      }
    }
  }

  /// Expects that a sweep deletes the entries that have expired, and no others.
  private func expectSwept(_ store: Store, _ cache: Cache<Int, Int>, _ at: Comment) throws {
    let read = { try (0..<320).map { try cache.value(for: $0) } }
    let before = try read()
    _ = try store.sweep() + store.sweep()
    #expect(try read() == before, at)
    let report = try cache.validate()
    #expect(report.expired == 0, at)
  }

  @Test(
    "Entries are swept when they have expired, though a write has failed, or all from then on.",
    arguments: [SimulatedDisk.Fault.eio, .shortWrite, .failedSync], [false, true])
  func failingWrites(fault: SimulatedDisk.Fault, separated: Bool) throws {
    var failures = 0
    for number in 1...40 {
      let (disk, clock) = (SimulatedDisk(), ManualClock())
      var (store, cache) = try open(disk, clock, separated: separated)
      disk.fail(inRound: number, fault, every: 5)
      let (first, second) = (store, cache)
      onThreads(4) { thread in
        #expect(throws: Never.self) {
          var random = SplitMix64(seed: UInt64(number * 4 + thread))
          try self.run(thread, in: first, second, clock, &random)
        }
      }
      failures += disk.counts.failed
      disk.heal()
      // Opens the files again, if that is needed; the first one may report a failed compaction.
      do { try cache.save(0, for: -1) } catch { try cache.save(0, for: -1) }
      clock.advance(by: .seconds(500))
      if number % 3 > 0 { try expectSwept(store, cache, "\(fault) at \(number)") }
      try store.close()
      clock.advance(by: .seconds(1000))
      (store, cache) = try open(disk, clock, separated: separated)
      try expectSwept(store, cache, "\(fault) at \(number), opened again")
      try store.close()
    }
    #expect(failures > 20)
  }

  @Test("A closing mark that takes effect though its write failed hides no entry from the sweep.")
  func markInDoubt() throws {
    let (disk, clock) = (SimulatedDisk(), ManualClock())
    var (store, cache) = try open(disk, clock, separated: false)
    try cache.save(1, for: 1)
    try store.context.writeNotes()
    // The write of another thread may be the one that has the mark of a store that is suspended.
    store.context.notes.requestPacks(closing: true)
    disk.fail(inCalls: 1, .failedSync)
    var write = WriteBatch()
    let key = Metadata.beginning
    write.remove(key.span.bytes)
    #expect(throws: StoreError.self) { try store.context.engine.write(&write, synced: true) }
    disk.heal()
    try cache.save(2, for: 2)
    try cache.save(3, for: 3)

    let killed = disk.copy()
    try store.close()
    clock.advance(by: .seconds(2000))
    (store, cache) = try open(killed, clock, separated: false)
    #expect(try store.sweep() == 3)
    try store.close()
  }
}
