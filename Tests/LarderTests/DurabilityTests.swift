import Foundation
import LarderTestSupport
import SimulatedDisk
import Testing

@testable import Larder

/// Writes survive the power losses and failures that their durability promises.
@Suite struct DurabilityTests {
  private let disk = SimulatedDisk()

  private func open(_ disk: SimulatedDisk, _ options: Store.Options = Store.Options()) throws
    -> (store: Store, cache: Cache<String, Int>)
  {
    var engineOptions = LevelDBOptions()
    engineOptions.files = SimulatedFiles(disk)
    engineOptions.writeBufferBytes = 64 << 10
    let engine = try LevelDBEngine(at: "/store", options: engineOptions)
    let store = try Store(engine: engine, options: options, origin: .disk)
    return (store, try store.cache("numbers", of: Int.self))
  }

  /// The store after a power loss in which everything that was not synced is lost.
  private func afterPowerLoss() throws -> Cache<String, Int> {
    let replay = disk.replay()
    while replay.step() != nil {}
    return try open(replay.image(.nothingUnsynced)).cache
  }

  @Test("A save for power loss makes everything before it durable.")
  func powerLossSave() throws {
    let (store, cache) = try open(disk)
    for number in 0..<2000 { try cache.save(number, for: "\(number)") }
    try cache.save(-1, for: "last", durability: .powerLoss)
    let survivor = try afterPowerLoss()
    #expect(try survivor.value(for: "last") == -1)
    for number in 0..<2000 { try #require(try survivor.value(for: "\(number)") == number) }
    try store.close()
  }

  @Test("A flush makes everything before it durable.")
  func flush() throws {
    let (store, cache) = try open(disk)
    for number in 0..<2000 { try cache.save(number, for: "\(number)") }
    try store.flush()
    let survivor = try afterPowerLoss()
    for number in 0..<2000 { try #require(try survivor.value(for: "\(number)") == number) }
    try store.close()
  }

  @Test("The store's durability is the default of its writes.")
  func defaultDurability() throws {
    var options = Store.Options()
    options.durability = .powerLoss
    let (store, cache) = try open(disk, options)
    try cache.save(1, for: "a")
    #expect(try afterPowerLoss().value(for: "a") == 1)
    try store.write(durability: .processCrash) { $0.save(2, for: "b", in: cache) }
    #expect(try afterPowerLoss().value(for: "b") == nil)
    try store.write(durability: .powerLoss) { $0.save(3, for: "c", in: cache) }
    #expect(try afterPowerLoss().value(for: "b") == 2)
    #expect(try afterPowerLoss().value(for: "c") == 3)
    try store.close()
  }

  @Test("A store on a full disk stays readable, and writes again once there is room.")
  func fullDisk() throws {
    let (store, cache) = try open(disk)
    try cache.save(1, for: "a")
    disk.fail(atCall: disk.counts.writes + 1, .enospc, of: .writes, forever: true)
    #expect(throws: StoreError.self) { try cache.save(2, for: "b") }
    do {
      try cache.save(3, for: "c")
      Issue.record("it was saved")
    } catch StoreError.writesDisabled {
    }
    #expect(try cache.value(for: "a") == 1)
    disk.heal()
    try cache.save(4, for: "d")
    #expect(try cache.value(for: "a") == 1)
    #expect(try cache.value(for: "b") == nil)
    #expect(try cache.value(for: "d") == 4)
    try store.close()
  }

  /// After a failed sync LevelDB refuses all writes, although the failed one is in the log.
  ///
  /// The first sync is of the log, the second of the directory, for the name of the new log.
  @Test(
    "A failed clear that takes effect when the database reopens is noticed.", arguments: [1, 2])
  func failedClear(
    sync: Int
  ) throws {
    let (store, cache) = try open(disk)
    try cache.save(1, for: "a")
    try store.context.engine.compact(EngineRange())
    disk.fail(atCall: disk.counts.syncs + sync, .failedSync, of: .syncs)
    #expect(throws: StoreError.self) { try cache.removeAll() }
    // This write used the id that the cache had before.
    #expect(throws: StoreError.self) { try cache.save(2, for: "b") }
    try cache.save(3, for: "c")
    #expect(try cache.value(for: "a") == nil)
    #expect(try cache.value(for: "b") == nil)
    #expect(try cache.value(for: "c") == 3)
    try store.close()
    let again = try open(disk)
    #expect(try again.cache.value(for: "a") == nil)
    #expect(try again.cache.value(for: "c") == 3)
    try again.store.close()
  }
}

extension DurabilityTests {
  @Test("Byte counts are right after failed writes reopened the database.", arguments: 1...6)
  func countsAfterReopening(sync: Int) throws {
    let (store, _) = try open(disk)
    let cache = try store.cache("few", of: Int.self, byteBudget: 1 << 20)
    for number in 0..<20 { try cache.save(number, for: "\(number)") }
    try store.context.engine.compact(EngineRange())
    disk.fail(atCall: disk.counts.syncs + sync, .failedSync, of: .syncs)
    var failures = 0
    for number in 20..<30 {
      do {
        try cache.save(number, for: "\(number)", durability: .powerLoss)
        if number.isMultiple(of: 3) { try cache.removeAll() }
      } catch {
        // It is unknown until the next write whether this one took effect.
        failures += 1
        continue
      }
      let held = try KeySpace.recordBytes(ofCache: cache.core.id, in: store.context.engine).bytes
      let account = try #require(store.context.budgets.accounting.count(cache.core.id), "\(number)")
      #expect(account.bytes == held && account.isExact, "\(number)")
    }
    #expect(failures > 0)
    try store.close()
  }
}

/// Opening a damaged store follows the policy of its options.
@Suite struct DamagePolicyTests {
  /// A closed store with a hundred entries, and its log.
  private func filled(
    in directory: borrowing TemporaryDirectory
  ) throws -> (place: URL, log: URL) {
    let place = URL(filePath: directory.path).appending(path: "store")
    let store = try Store(at: place)
    let cache = try store.cache("numbers", of: Int.self)
    for number in 0..<100 { try cache.save(number, for: "\(number)") }
    try store.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: place.path())
    let log = place.appending(path: try #require(names.first { $0.hasSuffix(".log") }))
    return (place, log)
  }

  private func damaged(in directory: borrowing TemporaryDirectory) throws -> URL {
    let (place, log) = try filled(in: directory)
    var bytes = try Data(contentsOf: log)
    bytes[200] ^= 0xFF
    try bytes.write(to: log)
    return place
  }

  @Test("By default a damaged store fails to open.")
  func fails() throws {
    let directory = try TemporaryDirectory()
    let place = try damaged(in: directory)
    #expect {
      try Store(at: place)
    } throws: { error in
      guard case StoreError.corrupt("", "", let file?) = error else { return false }
      return file.contains(".log")
    }
  }

  @Test("With the recreate policy, a damaged store is moved aside and a new one opened.")
  func recreate() throws {
    let directory = try TemporaryDirectory()
    let place = try damaged(in: directory)
    var options = Store.Options()
    options.onDamage = .recreate
    let store = try Store(at: place, options: options)
    let report = try #require(store.recovery)
    #expect(report.summary.contains("an empty store"))
    let aside = try #require(report.setAside)
    #expect(aside.lastPathComponent == "store.damaged")
    #expect(FileManager.default.fileExists(atPath: aside.appending(path: "CURRENT").path()))
    let cache = try store.cache("numbers", of: Int.self)
    #expect(try cache.value(for: "1") == nil)
    try cache.save(1, for: "1")
    try store.close()

    let again = try Store(at: place, options: options)
    #expect(again.recovery == nil)
    #expect(try again.cache("numbers", of: Int.self).value(for: "1") == 1)
    try again.close()
  }

  @Test("A torn end of the log is reported, and everything before it is readable.")
  func tornEnd() throws {
    let directory = try TemporaryDirectory()
    let (place, log) = try filled(in: directory)
    let bytes = try Data(contentsOf: log)
    // Before the last record, which the closing wrote.
    var scan = LogScan([UInt8](bytes), of: .batches(minimumSequence: 0))
    var last = 0
    while let record = scan.next() { last = record.start }
    try bytes.prefix(last - 3).write(to: log)

    let again = try Store(at: place)
    let report = try #require(again.recovery)
    #expect(report.summary.contains(log.lastPathComponent))
    let numbers = try again.cache("numbers", of: Int.self)
    #expect(try numbers.value(for: "98") == 98)
    #expect(try numbers.value(for: "99") == nil)
    try again.close()
  }
}
