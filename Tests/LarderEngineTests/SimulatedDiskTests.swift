import Foundation
import SimulatedDisk
import Testing

@testable import Larder

/// The simulated disk loses and fails exactly as the other tests assume.
@Suite struct SimulatedDiskTests {
  private let disk = SimulatedDisk()
  private var files: SimulatedFiles { SimulatedFiles(disk) }

  /// Makes a file with 8 synced bytes and 8 unsynced ones, and returns them.
  private func halfSynced() throws -> [UInt8] {
    try files.makeDirectory("/store")
    try files.append(Array(0..<8), to: "/store/a")
    try files.synchronize("/store/a")
    try files.synchronizeDirectory("/store")
    try files.append(Array(8..<16), to: "/store/a")
    return Array(0..<16)
  }

  /// The disk after a crash that follows `count` changes, or all of them.
  private func crash(_ model: CrashModel, after count: Int? = nil) -> SimulatedDisk {
    let replay = disk.replay()
    while replay.position != count, replay.step() != nil {}
    return replay.image(model)
  }

  // MARK: - Crashes

  @Test("Synced bytes survive a crash, and others do not.")
  func syncedBytes() throws {
    let all = try halfSynced()
    #expect(disk.unsyncedCount(of: "/store/a") == 8)
    #expect(crash(.everything).bytes(of: "/store/a") == all)
    #expect(crash(.nothingUnsynced).bytes(of: "/store/a") == Array(all.prefix(8)))
    #expect(crash(.unsyncedDataLost).bytes(of: "/store/a") == Array(all.prefix(8)))
    #expect(crash(.oldFileTailLost).bytes(of: "/store/a") == Array(all.prefix(8)))
    try files.synchronize("/store/a")
    #expect(crash(.nothingUnsynced).bytes(of: "/store/a") == all)
  }

  @Test("A file without a durable name is lost.")
  func lostNames() throws {
    _ = try halfSynced()
    try files.replace("/store/b", with: [1])
    #expect(crash(.nothingUnsynced).names == ["/store/a"])
    #expect(crash(.namesLost(keeping: 0)).names == ["/store/a"])
    #expect(crash(.namesLost(keeping: 1)).names == ["/store/a", "/store/b"])
    try files.synchronizeDirectory("/store")
    #expect(crash(.nothingUnsynced).names == ["/store/a", "/store/b"])
  }

  @Test("A file keeps its bytes until its truncation is durable.")
  func truncation() throws {
    let all = try halfSynced()
    try files.append([99], to: "/store/b")
    try files.synchronize("/store/a")
    disk.fail(atCall: disk.counts.syncs + 1, .failedSync)
    #expect(throws: StoreError.self) { try files.replace("/store/a", with: [1, 2, 3]) }
    #expect(crash(.nothingUnsynced).bytes(of: "/store/a") == all)
    #expect(crash(.everything).bytes(of: "/store/a") == [1, 2, 3])
    let found = Set((0..<64).map { crash(.prefix(seed: $0)).bytes(of: "/store/a") ?? [] })
    #expect(found == [all, [], [1], [1, 2], [1, 2, 3]])
  }

  @Test("A rename takes effect completely or not at all.")
  func renames() throws {
    _ = try halfSynced()
    try files.makeDirectory("/store/sub")
    try files.replace("/store/sub/b", with: [1])
    try files.replace("/other", with: [2])
    try files.synchronizeDirectory("/")
    let before = disk.hash
    try files.move("/store/sub/b", to: "/other")
    try files.move("/store", to: "/moved")
    let names = [
      0: ["/other", "/store/a", "/store/sub/b"], 1: ["/other", "/store/a"],
      2: ["/moved/a", "/other"],
    ]
    for (kept, names) in names { #expect(crash(.namesLost(keeping: kept)).names == names) }
    #expect(crash(.namesLost(keeping: 0)).hash == before)
    #expect(crash(.namesLost(keeping: 1)).bytes(of: "/other") == [1])
    #expect(crash(.nothingUnsynced).bytes(of: "/other") == [2])
    for seed in 0..<16 {
      let found = crash(.prefix(seed: UInt64(seed))).names
      #expect(names.values.contains(found))
    }
  }

  @Test("Damage affects only unsynced bytes.", arguments: 0..<32 as Range<UInt64>)
  func unsyncedDamage(seed: UInt64) throws {
    let all = try halfSynced()
    let models: [CrashModel] = [
      .tornLastAppend(seed: seed), .zeroedTail(seed: seed), .garbageTail(seed: seed),
      .prefix(seed: seed),
    ]
    for model in models {
      let bytes = try #require(crash(model).bytes(of: "/store/a"))
      #expect(bytes.prefix(8) == all.prefix(8))
      #expect(bytes.count <= all.count)
      #expect(crash(model).hash == crash(model).hash)
    }
    let zeroed = try #require(crash(.zeroedTail(seed: seed)).bytes(of: "/store/a"))
    #expect(zeroed.count == 16 && zeroed.last == 0)
    #expect(crash(.garbageTail(seed: seed)).hash != disk.hash)
    #expect(crash(.tornLastAppend(seed: seed)).bytes(of: "/store/a") != all)
    try files.synchronize("/store/a")
    for model in models { #expect(crash(model).bytes(of: "/store/a") == all) }
  }

  @Test("Different seeds damage different bytes.")
  func seeds() throws {
    _ = try halfSynced()
    let seeds = 0..<32 as Range<UInt64>
    #expect(Set(seeds.map { crash(.tornLastAppend(seed: $0)).hash }).count == 8)
    #expect(Set(seeds.map { crash(.zeroedTail(seed: $0)).hash }).count == 8)
    #expect(Set(seeds.map { crash(.garbageTail(seed: $0)).hash }).count > 16)
  }

  @Test("A replay stops after any change.")
  func replay() throws {
    _ = try halfSynced()
    let replay = disk.replay()
    var steps: [Replay.Step.Kind] = []
    while let step = replay.step() { steps.append(step.kind) }
    #expect(steps == [.makeDirectory, .create, .write, .sync, .syncDirectory, .write])
    #expect(steps.count == disk.journalCount)
    #expect(crash(.everything, after: 2).bytes(of: "/store/a") == [])
    #expect(crash(.everything, after: 1).names == [])
    let image = crash(.everything)
    #expect(image.hash == disk.hash && image.journalCount == 0)
    #expect(image.unsyncedCount(of: "/store/a") == 0)
  }

  @Test("An edit of a copy does not change the original.")
  func copies() throws {
    let all = try halfSynced()
    let copy = disk.copy()
    copy.edit("/store/a") { $0[3] ^= 1 }
    #expect(disk.bytes(of: "/store/a") == all)
    #expect(copy.hash != disk.hash)
    copy.edit("/store/a") { $0[3] ^= 1 }
    #expect(copy.hash == disk.hash)
  }

  // MARK: - Faults

  @Test("A single fault hits one call.")
  func singleFailure() throws {
    _ = try halfSynced()
    disk.fail(atCall: disk.counts.mutating + 2, .eio)
    let failed = (0..<5).filter { number in fails { try files.append([number], to: "/store/a") } }
    #expect(failed == [1])
    #expect(disk.counts.failed == 1)
    #expect(disk.bytes(of: "/store/a")?.suffix(4) == [0, 2, 3, 4])
  }

  @Test("A permanent fault lasts until the disk is healed.")
  func permanentFailure() throws {
    _ = try halfSynced()
    #expect(try files.availableBytes(in: "/store") > 0)
    disk.fail(atCall: disk.counts.writes + 1, .enospc, of: .writes, forever: true)
    for _ in 0..<3 {
      #expect(throws: StoreError.diskFull) { try files.append([1], to: "/store/a") }
    }
    #expect(try files.availableBytes(in: "/store") == 0)
    try files.synchronize("/store/a")
    disk.heal()
    try files.append([1], to: "/store/a")
    #expect(try files.availableBytes(in: "/store") > 0)
  }

  @Test("A short write leaves half of its bytes.")
  func shortWrite() throws {
    let all = try halfSynced()
    disk.fail(atCall: disk.counts.writes + 1, .shortWrite, of: .writes)
    #expect(throws: StoreError.diskFull) {
      try files.append([1, 2, 3, 4], to: "/store/a")
    }
    #expect(disk.bytes(of: "/store/a") == all + [1, 2])
  }

  @Test("A failed sync makes nothing durable.")
  func failedSync() throws {
    let all = try halfSynced()
    disk.fail(atCall: disk.counts.syncs + 1, .failedSync)
    #expect(fails { try files.synchronize("/store/a") })
    #expect(crash(.nothingUnsynced).bytes(of: "/store/a") == Array(all.prefix(8)))
  }

  private func fails(_ body: () throws -> Void) -> Bool {
    do { try body() } catch { return true }
    return false
  }

  // MARK: - LevelDB

  /// 200 entries make several logs, tables and manifests.
  @Test("LevelDB works on the simulated disk.")
  func database() {
    #expect(disk.fillDatabase(at: "/db", from: 0, count: 200) == 200)
    #expect(disk.names.contains("/db/CURRENT"))
    #expect(disk.fillDatabase(at: "/db", from: 200, count: 1) == 1)
    #expect(disk.databaseCount(at: "/db") == 201)
    #expect(disk.databaseCount(at: "/none") == nil)
  }

  @Test("A database opens complete after each change.")
  func databaseAtEachChange() {
    _ = disk.fillDatabase(at: "/db", from: 0, count: 1)
    let start = disk.journalCount
    _ = disk.fillDatabase(at: "/db", from: 1, count: 150)
    let replay = disk.replay()
    var count = 1
    while replay.step() != nil {
      guard replay.position >= start, replay.position.isMultiple(of: 7) else { continue }
      let found = replay.image(.everything).databaseCount(at: "/db") ?? -1
      #expect(found >= count, "after \(replay.position) changes")
      count = found
    }
    #expect(replay.image(.everything).databaseCount(at: "/db") == 151)
  }

  @Test(
    "A database keeps what it acknowledged before a fault.",
    arguments: [SimulatedDisk.Fault.eio, .enospc, .shortWrite, .failedSync])
  func databaseWithFault(fault: SimulatedDisk.Fault) throws {
    #expect(disk.fillDatabase(at: "/db", from: 0, count: 10) == 10)
    let counts = disk.counts
    let start = fault == .failedSync ? counts.syncs : counts.mutating
    disk.fail(atCall: start + 100, fault, forever: true)
    let taken = disk.fillDatabase(at: "/db", from: 10, count: 200)
    #expect(taken > 0 && taken < 200)
    disk.heal()
    let found = try #require(disk.databaseCount(at: "/db"))
    #expect(found >= 10 + taken)
  }

  @Test("Held background work continues call by call.")
  func background() throws {
    let engine = try PowerLossHistory.open(disk)
    disk.holdBackground()
    defer { disk.releaseBackground() }
    while disk.names.count(where: { $0.hasSuffix(".log") }) < 2 {
      try engine.put(bytes("key"), stampedValue(1, tail: 9000), stamped: true)
    }
    let count = disk.journalCount
    // The work starts, and stops before its first change.
    disk.runBackground(calls: 1)
    #expect(disk.journalCount == count)
    disk.runBackground(calls: 2)
    #expect(disk.journalCount == count + 2)
    try engine.put("meanwhile", "1")
    let last = disk.journalCount
    #expect(last > count + 2)
    disk.runBackground()
    #expect(disk.journalCount > last)
    #expect(disk.names.contains { $0.hasSuffix(".ldb") })
    #expect(disk.names.count { $0.hasSuffix(".log") } == 1)
    try engine.close()
  }

  // MARK: - The file layer

  @Test("Only one holder can have a guard file.")
  func guardFile() throws {
    _ = try halfSynced()
    let first = try files.takeGuard(at: "/store/guard")
    #expect(throws: StoreError.locked(pid: ProcessInfo.processInfo.processIdentifier)) {
      try files.takeGuard(at: "/store/guard")
    }
    first.release()
    #expect(disk.bytes(of: "/store/guard") == [])
    try files.takeGuard(at: "/store/guard").release()
  }

  @Test("Paths are normalized, and kinds and names are reported.")
  func pathsAndKinds() throws {
    _ = try halfSynced()
    #expect(try files.realPath("/store/./") == "/store")
    #expect(try files.kind(of: "/") == .directory)
    #expect(try files.kind(of: "/store/") == .directory)
    #expect(try files.kind(of: "/store/a") == .other)
    #expect(try files.kind(of: "/none") == nil)
    #expect(try files.names(in: "/") == ["store"])
    #expect(try files.names(in: "/store") == ["a"])
    #expect(throws: StoreError.self) { try files.replace("/none/a", with: []) }
  }
}
