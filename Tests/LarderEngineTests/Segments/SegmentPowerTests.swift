import AcceptanceRows
import Foundation
import Larder
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// What a power loss, or a kill, leaves of a store with segments, in single cases.
///
/// `PowerLossTests` has random ones.
@Suite(.acceptance) struct SegmentPowerTests {
  private static func options(_ disk: SimulatedDisk) -> LevelDBOptions {
    var options = SeparationTests.options(from: 1, segmentBytes: 8 << 10)
    options.collectsInBackground = false
    options.files = SimulatedFiles(disk)
    return options
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private static func tail(_ mark: UInt8) -> [UInt8] { [UInt8](repeating: mark, count: 1000) }

  private static func put(
    _ number: Int, _ mark: UInt8, in engine: LevelDBEngine, synced: Bool = false
  ) throws {
    try SeparationTests.put(key(number), tail(mark), in: engine, synced: synced)
  }

  private static func expect(_ number: Int, _ mark: UInt8, in engine: LevelDBEngine) throws {
    try SeparationTests.expect(tail(mark), under: key(number), in: engine)
  }

  @Test("A payload that is written during a compaction survives a power loss if its row does.")
  func writesDuringCompactions() throws {
    let disk = SimulatedDisk()
    var options = Self.options(disk)
    // A full segment would be synced.
    options.segmentBytes = 1 << 20
    let engine = try LevelDBEngine(at: "/store", options: options)
    let isDone = Atomic<Bool>(false)
    let writes = Atomic<Int>(0)
    let errors = Mutex<[String]>([])
    onThreads(3) { thread in
      do {
        var number = 0
        while thread > 0, !isDone.load(ordering: .relaxed) {
          number += 1
          try Self.put(3 * (number % 5) + thread, UInt8(number % 200), in: engine)
          writes.add(1, ordering: .relaxed)
        }
        var compactions = 0
        while thread == 0, !isDone.load(ordering: .relaxed),
          compactions < 20 || writes.load(ordering: .relaxed) < 100
        {
          compactions += 1
          try engine.compact(EngineRange())
        }
      } catch {
        errors.withLock { $0.append("\(error)") }
        isDone.store(true, ordering: .relaxed)
      }
      if thread == 0 { isDone.store(true, ordering: .relaxed) }
    }
    #expect(errors.withLock { $0 } == [])
    try engine.close()
    let replay = disk.replay()
    var (states, entries) = (0, 0)
    while let step = replay.step() {
      guard step.kind == .sync, !step.path.hasSuffix(".segment") else { continue }
      states += 1
      options.files = SimulatedFiles(replay.image(.nothingUnsynced))
      let opened = try LevelDBEngine(at: "/store", options: options)
      for entry in try opened.entries() {
        entries += 1
        #expect(isIntact(entry.value, key: entry.key))
      }
      try opened.close()
    }
    #expect(states > 20 && entries > 20)
  }

  @Test("A power loss after the opening that follows a kill leaves no row without its payload.")
  func powerLossAfterKill() throws {
    let disk = SimulatedDisk()
    let engine = try LevelDBEngine(at: "/store", options: Self.options(disk))
    for number in 0..<3 { try Self.put(number, 1, in: engine) }
    // With all bytes that were written, and none of them on the device.
    let killed = disk.copy()
    let opened = try LevelDBEngine(at: "/store", options: Self.options(killed))
    for number in 0..<3 { try Self.expect(number, 1, in: opened) }
    try opened.close()
    try engine.close()
    let replay = killed.replay()
    var entries = 0
    while replay.step() != nil {
      // LevelDB renames CURRENT without a sync.
      let image = replay.image(.unsyncedDataLost)
      guard image.names.contains("/store/CURRENT") else { continue }
      let again = try LevelDBEngine(at: "/store", options: Self.options(image))
      for entry in try again.entries() {
        entries += 1
        #expect(isIntact(entry.value, key: entry.key))
      }
      try again.close()
    }
    #expect(entries > 0)
  }

  @Test("A durable value survives until the one that replaced it is durable, collected or not.")
  func durableUntilReplaced() throws {
    let disk = SimulatedDisk()
    var options = Self.options(disk)
    options.syncsInBackground = false
    let engine = try LevelDBEngine(at: "/store", options: options)
    for number in 0..<14 { try Self.put(number, 1, in: engine, synced: number == 13) }
    let durable = disk.journalCount
    for number in 0..<14 { try Self.put(number, 2, in: engine) }
    try engine.collectSegments()
    #expect(engine.segmentTotals.deletedBytes > 14_000)
    let end = disk.journalCount
    try engine.close()
    var marks: Set<UInt8> = []
    let replay = disk.replay()
    while replay.position < end, replay.step() != nil {
      guard replay.position >= durable else { continue }
      for model in [CrashModel.nothingUnsynced, .unsyncedDataLost, .namesLost(keeping: 1)] {
        let image = replay.image(model)
        let opened = try LevelDBEngine(at: "/store", options: Self.options(image))
        for number in 0..<14 {
          let value = try #require(try opened.value(Self.key(number)))
          let mark = try #require(value.last)
          #expect(mark == 1 || mark == 2)
          try Self.expect(number, mark, in: opened)
          marks.insert(mark)
        }
        try opened.close()
      }
    }
    #expect(marks == [1, 2])
  }

  @Test("No power loss leaves a segment in a store that older versions would open.")
  func markerFirst() throws {
    let disk = SimulatedDisk()
    let engine = try LevelDBEngine(at: "/store", options: Self.options(disk))
    try Self.put(0, 1, in: engine, synced: true)
    try engine.close()
    var versions: Set<Int> = []
    var withSegments = 0
    let replay = disk.replay()
    while replay.step() != nil {
      let models: [CrashModel] =
        [.everything, .nothingUnsynced, .unsyncedDataLost]
        + (0..<max(1, replay.pendingNames)).map { .namesLost(keeping: $0) }
      for model in models {
        let image = replay.image(model)
        let version = image.bytes(of: "/store/LARDER").flatMap { StoreMarker.formatVersion(in: $0) }
        versions.insert(version ?? 0)
        guard image.names.contains(where: { $0.hasSuffix(".segment") }) else { continue }
        withSegments += 1
        #expect(version == 2)
      }
    }
    #expect(versions == [0, 1, 2] && withSegments > 10)
  }

  @Test(
    "Zeroes where frames were, and behind the end, are not taken for frames.", arguments: 0...4)
  func zeroes(kept: Int) throws {
    let directory = try TemporaryDirectory()
    let options = SeparationTests.options(from: 1)
    let engine = try LevelDBEngine(at: directory.path("store"), options: options)
    // The first write is durable, whatever it is.
    try engine.put("first", "")
    for number in 0..<4 { try Self.put(number, 1, in: engine) }
    // As a kill leaves it: without a seal.
    try FileManager.default.copyItem(
      atPath: directory.path("store"), toPath: directory.path("copy"))
    try engine.close()
    let path = directory.path("copy/00000001.segment")
    var contents = try SystemFiles().read(path, limit: nil)
    let frameBytes = (contents.count - 16) / 4
    contents.removeSubrange((16 + kept * frameBytes)...)
    contents += [UInt8](repeating: 0, count: (4 - kept) * frameBytes + 10_000)
    try Data(contents).write(to: URL(filePath: path))
    let opened = try LevelDBEngine(at: directory.path("copy"), options: options)
    #expect((opened.recovery == nil) == (kept == 4))
    for number in 0..<4 {
      if number < kept {
        try Self.expect(number, 1, in: opened)
      } else {
        #expect(try opened.value(Self.key(number)) == nil)
      }
    }
    // The store stays usable, and gives the room back.
    for number in 0..<4 { try Self.put(number, 2, in: opened) }
    try opened.collectSegments()
    for number in 0..<4 { try Self.expect(number, 2, in: opened) }
    #expect(try SystemFiles().kind(of: path) == nil)
    try opened.close()
  }
}
