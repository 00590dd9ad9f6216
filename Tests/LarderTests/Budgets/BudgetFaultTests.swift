import Foundation
import LarderEngineSupport
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// Budgets and counts hold while writes fail, and while the store is suspended.
@Suite struct BudgetFaultTests {
  private static let budget = 20_000

  private func open(
    _ disk: SimulatedDisk, separated: Bool
  ) throws -> (Store, Cache<Int, Data>) {
    var options = Store.Options()
    options.sweepInterval = nil
    options.advanced.separatedValueBytes = separated ? 1 : nil
    let store = try Store(on: disk, options: options)
    let cache = try store.cache(
      "cache", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: Self.budget)
    return (store, cache)
  }

  /// What is wrong with the count of a cache, or by how much it exceeds its budget; nil if nothing.
  private func miscount(of cache: Cache<Int, Data>, in store: Store) throws -> String? {
    let cursor = try store.context.engine.cursor(
      over: EngineRange(prefix: [KeySpace.records.rawValue]))
    var held = 0
    while try cursor.next() {
      cursor.withEntry { key, value in held += key.byteCount + value.byteCount }
    }
    guard let count = store.context.budgets.accounting.count(cache.core.id) else {
      return "not counted"
    }
    guard count.bytes == held else { return "\(count.bytes) counted, \(held) held" }
    return held <= Self.budget ? nil : "\(held) held"
  }

  /// Saves 160 values by four threads, so that most evict others; returns the errors.
  private func save(in cache: Cache<Int, Data>) -> [any Error] {
    let errors = Mutex<[any Error]>([])
    onThreads(4) { thread in
      for number in 0..<40 {
        do {
          try cache.save(
            bytes(900, UInt8(number)), for: thread * 1000 + number,
            durability: number % 8 == 0 ? .powerLoss : nil)
          if number % 5 == 0 { try cache.remove(thread * 1000 + number - 3) }
        } catch {
          errors.withLock { $0.append(error) }
        }
      }
    }
    return errors.withLock { $0 }
  }

  @Test(
    "Counts are right and budgets are kept though a write fails, or all from then on.",
    arguments: [SimulatedDisk.Fault.eio, .shortWrite, .failedSync], [false, true])
  func failingWrites(fault: SimulatedDisk.Fault, separated: Bool) throws {
    var failures = 0
    for number in 1...40 {
      let disk = SimulatedDisk()
      var (store, cache) = try open(disk, separated: separated)
      disk.fail(inRound: number, fault, every: 7)
      let errors = save(in: cache)
      failures += disk.counts.failed
      disk.heal()
      #expect(errors.allSatisfy { ($0 as? StoreError)?.isWriteFailure == true }, "\(errors)")
      // The first one may report a compaction that failed.
      do { try cache.save(bytes(900), for: -1) } catch is StoreError {}
      try cache.save(bytes(900), for: -1)
      #expect(try miscount(of: cache, in: store) == nil, "\(fault) at \(number)")
      try store.close()
      (store, cache) = try open(disk, separated: separated)
      try cache.save(bytes(900), for: -2)
      #expect(try miscount(of: cache, in: store) == nil, "\(fault) at \(number), reopened")
      try store.close()
    }
    #expect(failures > 20)
  }

  @Test(
    "Counts are right and budgets are kept though the store is suspended.",
    arguments: [false, true])
  func suspension(separated: Bool) throws {
    for _ in 0..<20 {
      let disk = SimulatedDisk()
      let (store, cache) = try open(disk, separated: separated)
      let hasEnded = Atomic(false)
      onThreads(2) { thread in
        if thread == 0 {
          let errors = self.save(in: cache)
          #expect(errors.allSatisfy { $0 as? StoreError == .suspended }, "\(errors)")
          hasEnded.store(true, ordering: .relaxed)
        } else {
          while !hasEnded.load(ordering: .relaxed) {
            #expect(throws: Never.self) {
              try store.suspend()
              try store.resume()
            }
          }
        }
      }
      try cache.save(bytes(900), for: -1)
      #expect(try miscount(of: cache, in: store) == nil)
      try store.close()
    }
  }
}
