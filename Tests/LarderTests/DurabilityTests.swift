import Foundation
import LarderEngine
import LarderTestSupport
import SimulatedDisk
import Testing

@testable import Larder

/// What is promised of power loss, and of a store that is damaged.
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

  /// The store as it is after a power loss that took all that had not been waited for.
  private func afterPowerLoss() throws -> Cache<String, Int> {
    let replay = disk.replay()
    while replay.step() != nil {}
    return try open(replay.image(.nothingUnsynced)).cache
  }

  @Test func aSaveForPowerLossKeepsAllBeforeIt() throws {
    let (store, cache) = try open(disk)
    for number in 0..<2000 { try cache.save(number, for: "\(number)") }
    try cache.save(-1, for: "last", durability: .powerLoss)
    let survivor = try afterPowerLoss()
    #expect(try survivor.value(for: "last") == -1)
    for number in 0..<2000 { try #require(try survivor.value(for: "\(number)") == number) }
    try store.close()
  }

  @Test func flushKeepsAllBeforeIt() throws {
    let (store, cache) = try open(disk)
    for number in 0..<2000 { try cache.save(number, for: "\(number)") }
    try store.flush()
    let survivor = try afterPowerLoss()
    for number in 0..<2000 { try #require(try survivor.value(for: "\(number)") == number) }
    try store.close()
  }

  @Test func durabilityOfTheStoreIsTheDefaultOfItsWrites() throws {
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

  @Test func aFullDiskLeavesTheStoreReadableAndWritingComesBack() throws {
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

  /// A failed sync makes LevelDB refuse for good; what it was to sync is in the log all the same.
  ///
  /// The first is of the log, the second of the directory, where the new log's name is.
  @Test(arguments: [1, 2]) func aClearThatFailsAndTakesEffectByReopeningIsFollowed(
    sync: Int
  ) throws {
    let (store, cache) = try open(disk)
    try cache.save(1, for: "a")
    try store.context.engine.compact(EngineRange())
    disk.fail(atCall: disk.counts.syncs + sync, .failedSync, of: .syncs)
    #expect(throws: StoreError.self) { try cache.removeAll() }
    // The next write stood on the number that the cache had before.
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
  /// Whatever a write that failed has done by the time the database was opened anew, it is counted.
  @Test(arguments: 1...6) func countsAreReadAgainWhenTheDatabaseWasOpenedAnew(sync: Int) throws {
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
        // Whether it took effect is unknown until the next write.
        failures += 1
        continue
      }
      let held = try KeySpace.heldBytes(ofCache: cache.core.id, in: store.context.engine).bytes
      let account = try #require(store.context.budgets.accounting.count(cache.core.id), "\(number)")
      #expect(account.bytes == held && account.isExact, "\(number)")
    }
    #expect(failures > 0)
    try store.close()
  }
}

/// What opening does with a damaged store.
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

  @Test func damageFailsAndChangesNothing() throws {
    let directory = try TemporaryDirectory()
    let place = try damaged(in: directory)
    #expect {
      try Store(at: place)
    } throws: { error in
      guard case StoreError.corrupt("", "", let file?) = error else { return false }
      return file.contains(".log")
    }
  }

  @Test func damageIsMovedAsideWhenTheOwnerSaysSo() throws {
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

  @Test func aTornEndIsReportedAndTheRestIsThere() throws {
    let directory = try TemporaryDirectory()
    let (place, log) = try filled(in: directory)
    let bytes = try Data(contentsOf: log)
    try bytes.dropLast(3).write(to: log)

    let again = try Store(at: place)
    let report = try #require(again.recovery)
    #expect(report.summary.contains(log.lastPathComponent))
    let numbers = try again.cache("numbers", of: Int.self)
    #expect(try numbers.value(for: "98") == 98)
    #expect(try numbers.value(for: "99") == nil)
    try again.close()
  }
}
