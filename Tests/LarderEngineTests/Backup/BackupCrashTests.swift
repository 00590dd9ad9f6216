import Foundation
import Larder
import LarderTestSupport
import Testing

/// A process killed during a backup or a restore leaves nothing that opens incomplete.
@Suite struct BackupCrashTests {
  @Test("A killed backup or restore is absent or complete.", arguments: ["backup", "restore"])
  func killed(task: String) throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    var interrupted = 0
    let rounds = isProof ? 600 : 15
    var round = 0
    // On a busy machine, all kills may come between two tasks.
    while round < rounds || (interrupted == 0 && round < 10 * rounds) {
      round += 1
      let fixture = try BackupFixture()
      // Enough bytes that copying them takes some time.
      for number in 0..<40 {
        try fixture.engine.put(Array("x\(number)".utf8), random.bytes(20_000))
        if number.isMultiple(of: 10) { try fixture.engine.compact(EngineRange()) }
      }
      let expected = try fixture.engine.entries()
      if task == "restore" { try fixture.makeBackup() }
      try fixture.engine.close()

      var worker = try ChildProcess("CrashWorker", [task, fixture.directory.path])
      var lines: [String] = []
      // An odd number of lines, so the kill comes in the middle of a task.
      for _ in 0..<(2 * Int.random(in: 0..<8, using: &random) + 1) {
        lines.append(worker.readLine() ?? "")
      }
      if round.isMultiple(of: 2) { waitUntilBegun(lines[lines.count - 1], fixture) }
      // A delay of another length each time.
      for _ in 0..<Int.random(in: 0..<40, using: &random) {
        _ = FileManager.default.fileExists(atPath: fixture.partial("restored"))
      }
      worker.kill()
      while let line = worker.readLine() { lines.append(line) }
      let names = lines.filter { $0 != "made" }
      try #require(names.allSatisfy { $0.hasPrefix(fixture.directory.path) }, "\(lines)")

      for name in names {
        let isMade = FileManager.default.fileExists(atPath: name)
        let wasReported = name != names.last || lines.last == "made"
        try #require(isMade || !wasReported, "\(name), seed \(seed)")
        let partial = fixture.partial((name as NSString).lastPathComponent)
        if FileManager.default.fileExists(atPath: partial) {
          interrupted += 1
          try requireAbsentOrComplete(partial, expected)
        }
        if !isMade { try make(name, task, fixture) }
        #expect(!FileManager.default.fileExists(atPath: partial))
        let store = task == "restore" ? name : fixture.restored
        if task == "backup" { try Backup(at: name).restore(to: store) }
        try #require(try entriesOfStore(at: store) == expected, "\(name), seed \(seed)")
        try FileManager.default.removeItem(atPath: store)
      }
    }
    print("killed \(task): \(interrupted) interrupted, seed \(seed)")
    #expect(interrupted > 0)
  }

  /// Throws if a directory that was not finished opens as a store with other entries.
  ///
  /// A restore writes the marker last, then renames the directory. A kill between the two leaves
  /// a complete store under the temporary name.
  private func requireAbsentOrComplete(_ partial: String, _ expected: [Entry]) throws {
    let found: [Entry]
    do throws(any Error) {
      found = try entriesOfStore(at: partial)
    } catch is StoreError {
      return
    }
    try #require(found == expected, "\(partial) opens, and is not complete")
  }

  /// Waits until a task has written something.
  ///
  /// A restore checks the backup before, which may take longer than all delays.
  private func waitUntilBegun(_ name: String, _ fixture: BackupFixture) {
    let limit = TimeLimit { fatalError("\(name) has not begun") }
    let partial = fixture.partial((name as NSString).lastPathComponent)
    let files = FileManager.default
    while !files.fileExists(atPath: partial), !files.fileExists(atPath: name) { sched_yield() }
    limit.lift()
  }

  private func make(_ name: String, _ task: String, _ fixture: BackupFixture) throws {
    if task == "restore" { return try Backup(at: fixture.backup).restore(to: name) }
    let engine = try LevelDBEngine(at: fixture.store)
    try engine.backup(to: name, date: 0)
    try engine.close()
  }
}
