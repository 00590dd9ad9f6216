import Larder
import LarderTestSupport
import SimulatedDisk
import Testing

/// A failed call or a power loss leaves a backup or a restored store complete or absent.
@Suite struct BackupFaultTests {
  private func open(_ disk: SimulatedDisk, linking: Bool = true) throws -> LevelDBEngine {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk, refusesLinks: !linking)
    return try LevelDBEngine(at: "/store", options: options)
  }

  /// A disk with a store that is completely durable, and optionally with a backup.
  private func filledDisk(withBackup: Bool) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let engine = try open(disk)
    try fillForBackup(engine)
    try engine.flush()
    if withBackup { try engine.backup(to: "/backup", date: 0) }
    try engine.close()
    let replay = disk.replay()
    _ = replay.steps()
    return replay.image(.everything)
  }

  private enum Task: CaseIterable {
    case backUp, copy, restore
  }

  /// Runs a task; a backup needs the engine of the store.
  private func run(_ task: Task, _ disk: SimulatedDisk, _ engine: LevelDBEngine?)
    throws(StoreError)
  {
    switch task {
    case .backUp, .copy: try engine?.backup(to: "/backup", date: 0)
    case .restore: try Backup(at: "/backup", files: SimulatedFiles(disk)).restore(to: "/restored")
    }
  }

  /// The path that the task creates, and the temporary path that it uses.
  private func places(_ task: Task) -> (target: String, partial: String) {
    task == .restore
      ? ("/restored", "/.restored.larder-partial") : ("/backup", "/.backup.larder-partial")
  }

  private func isThere(_ path: String, on disk: SimulatedDisk) -> Bool {
    disk.names.contains { $0.hasPrefix(path + "/") }
  }

  /// Reads the backup or the store that the task has made.
  private func entries(of task: Task, on disk: SimulatedDisk) throws -> [Entry] {
    let files = SimulatedFiles(disk)
    if task != .restore { try Backup(at: "/backup", files: files).restore(to: "/restored") }
    return try entriesOfStore(at: "/restored", files: files)
  }

  @Test(
    "A failed call leaves nothing behind, and the next attempt succeeds.", arguments: Task.allCases,
    SimulatedDisk.Fault.allCases)
  private func failedCall(task: Task, fault: SimulatedDisk.Fault) throws {
    for calls in [SimulatedDisk.Calls.mutating, .reads] {
      var number = 1
      var isDone = false
      while !isDone {
        let disk = try filledDisk(withBackup: task == .restore)
        let engine = task == .restore ? nil : try open(disk, linking: task == .backUp)
        let comment = Comment(rawValue: "\(task), \(fault), call \(number) of \(calls)")
        let before = disk.counts
        let start = calls == .reads ? before.reads : before.mutating
        let first = fault == .failedSync ? before.syncs : start
        disk.fail(atCall: first + number, fault, of: calls)
        do throws(StoreError) {
          try run(task, disk, engine)
          // No call failed, or only one that removes leftovers.
          isDone = disk.counts.failed == before.failed
          #expect(isThere(places(task).target, on: disk), comment)
        } catch {
          #expect(error == .diskFull || { if case .io = error { true } else { false } }(), comment)
          #expect(!isThere(places(task).target, on: disk), comment)
          disk.heal()
          try run(task, disk, engine)
        }
        disk.heal()
        #expect(!isThere(places(task).partial, on: disk), comment)
        #expect(try engine?.entries() ?? entriesForBackup == entriesForBackup, comment)
        try engine?.close()
        #expect(try entries(of: task, on: disk) == entriesForBackup, comment)
        number += 1
      }
      #expect(number > 5)
    }
  }

  @Test(
    "A power loss leaves a backup or a restored store complete or absent.", arguments: Task.allCases
  )
  private func powerLoss(task: Task) throws {
    let disk = try filledDisk(withBackup: task == .restore)
    let engine = task == .restore ? nil : try open(disk, linking: task == .backUp)
    let start = disk.journalCount
    try run(task, disk, engine)
    let end = disk.journalCount
    try engine?.close()
    let replay = disk.replay()
    while replay.position < start { _ = replay.step() }
    var counts = (none: 0, whole: 0)
    var seen: Set<UInt64> = []
    while replay.step() != nil {
      for model in [CrashModel.everything, .nothingUnsynced, .unsyncedDataLost]
        + (0..<4).map({ .prefix(seed: UInt64(replay.position) << 4 | $0) })
        + (0..<3).map({ .namesLost(keeping: $0) })
      {
        let image = replay.image(model)
        guard seen.insert(image.hash).inserted else { continue }
        let comment = Comment(rawValue: "\(task), after \(replay.position), \(model)")
        let isMade = isThere(places(task).target, on: image)
        #expect(isMade || replay.position < end, comment)
        try expectNoHalfStore(at: places(task).partial, on: image, comment)
        if isMade { counts.whole += 1 } else { counts.none += 1 }
        if !isMade {
          let engine = task == .restore ? nil : try open(image)
          try run(task, image, engine)
          try engine?.close()
        }
        #expect(try entries(of: task, on: image) == entriesForBackup, comment)
        #expect(
          try entriesOfStore(at: "/store", files: SimulatedFiles(image)) == entriesForBackup,
          comment)
      }
    }
    #expect(counts.none > 10 && counts.whole > 0, "\(counts)")
  }

  // A backup shares the tables that the MANIFEST names. If a power loss took the MANIFEST's last
  // record, the store would use the table's number again and truncate the shared file. So a backup
  // contains only what is durable in the store.
  @Test("A power loss of the store does not harm its backup.")
  func storeLosesPower() throws {
    var calls = 0
    var isAtEnd = false
    while !isAtEnd {
      let disk = SimulatedDisk()
      var options = LevelDBOptions()
      options.files = SimulatedFiles(disk)
      options.writeBufferBytes = 64 << 10
      let engine = try LevelDBEngine(at: "/store", options: options)
      disk.holdBackground()
      // One and a half logs: LevelDB is writing the table of the first one. Two logs would block.
      for number in 0..<70 { try engine.put("\(number)", String(repeating: "x", count: 1000)) }
      disk.runBackground(calls: calls)
      try engine.backup(to: "/backup", date: 0)
      let end = disk.journalCount
      let expected = try engine.entries()
      let before = disk.journalCount
      disk.runBackground(calls: 1)
      isAtEnd = disk.journalCount == before && calls > 5
      disk.releaseBackground()
      try engine.close()
      let replay = disk.replay()
      while replay.position < end { _ = replay.step() }
      for model in [CrashModel.nothingUnsynced, .everything]
        + (0..<4).map({ .prefix(seed: UInt64(calls) << 4 | $0) })
        + (0..<3).map({ .namesLost(keeping: $0) })
      {
        let comment = Comment(rawValue: "\(calls) calls, \(model)")
        let image = replay.image(model)
        options.files = SimulatedFiles(image)
        let store = try LevelDBEngine(at: "/store", options: options)
        for number in 0..<200 { try store.put("\(number)", String(repeating: "y", count: 1000)) }
        try store.compact(EngineRange())
        try store.close()
        try Backup(at: "/backup", files: options.files).restore(to: "/restored")
        #expect(
          try entriesOfStore(at: "/restored", files: options.files) == expected, comment)
      }
      calls += 1
    }
    #expect(calls > 8)
  }

  /// Expects that the path does not open as an incomplete store or backup.
  private func expectNoHalfStore(
    at path: String, on disk: SimulatedDisk, _ comment: Comment
  ) throws {
    guard isThere(path, on: disk) else { return }
    let copy = disk.copy()
    let files = SimulatedFiles(copy)
    do {
      #expect(try entriesOfStore(at: path, files: files) == entriesForBackup, comment)
    } catch StoreError.incompatible, StoreError.io {
      // Not a store.
    }
    do {
      try Backup(at: path, files: files).restore(to: "/other")
      #expect(try entriesOfStore(at: "/other", files: files) == entriesForBackup, comment)
    } catch StoreError.incompatible {
      // Not a backup.
    } catch StoreError.corrupt(_, _, "\(path)/LARDER.backup is damaged") {
      // The manifest is the last file to be written, and it is incomplete.
    }
  }
}
