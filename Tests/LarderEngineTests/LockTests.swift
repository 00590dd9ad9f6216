import Foundation
import Larder
import LarderTestSupport
import Testing

/// A store is open at most once across processes and paths, and an abandoned lock is released.
@Suite struct LockTests {
  private func outcome(ofOpening path: String) -> StoreError? {
    do throws(StoreError) {
      try LevelDBEngine(at: path).close()
      return nil
    } catch {
      return error
    }
  }

  @Test("A store is locked under every spelling of its path.")
  func spellings() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let link = directory.path("link")
    let engine = try LevelDBEngine(at: path)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let here = FileManager.default.currentDirectoryPath
    let relative =
      here.split(separator: "/").map { _ in "../" }.joined() + path.dropFirst()

    for alias in [path, "\(path)/", "\(path)/.", "\(path)/../store", link, relative] {
      #expect(
        outcome(ofOpening: alias) == .locked(pid: ProcessInfo.processInfo.processIdentifier),
        "\(alias)")
    }
    try engine.close()
    for alias in [link, relative] { #expect(outcome(ofOpening: alias) == nil, "\(alias)") }
  }

  @Test("Another process is refused and gets the owner's identifier.")
  func otherProcess() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    let before = try FileFacts.all(in: directory.path)

    var process = try ChildProcess("CrashWorker", ["open", directory.path])
    let outcome = process.readLine()

    let own = ProcessInfo.processInfo.processIdentifier
    #expect(outcome == "\(StoreError.locked(pid: own))")
    #expect(try FileFacts.all(in: directory.path) == before)
    try engine.close()

    var second = try ChildProcess("CrashWorker", ["open", directory.path])
    let secondOutcome = second.readLine()
    #expect(secondOutcome == "opened")
  }

  @Test("The error names the lock's owner, whose death releases the store.")
  func owner() throws {
    let directory = try TemporaryDirectory()
    var process = try ChildProcess("CrashWorker", ["hold", directory.path])
    let answer = process.readLine()
    #expect(answer == "ready")
    let owner = process.id

    #expect(outcome(ofOpening: directory.path) == .locked(pid: owner))
    process.kill()
    #expect(outcome(ofOpening: directory.path) == nil)
  }

  @Test("A directory that was deleted while open can be created again.")
  func deletedDirectory() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    var old: [LevelDBEngine] = []
    for round in 0..<3 {
      let engine = try LevelDBEngine(at: path)
      #expect(try engine.entries() == [])
      try engine.put("k", "round \(round)")
      #expect(outcome(ofOpening: path) != nil)
      old.append(engine)
      try FileManager.default.removeItem(atPath: path)
    }
    let engine = try LevelDBEngine(at: path)
    try engine.put("k", "last")
    for engine in old { try engine.close() }

    #expect(outcome(ofOpening: path) != nil)
    try engine.close()
    #expect(try LevelDBEngine(at: path).value("k") == "last")
  }

  @Test("Releasing the last reference releases the store.")
  func lastReference() throws {
    let directory = try TemporaryDirectory()
    for round in 0..<3 {
      let engine = try LevelDBEngine(at: directory.path)
      try engine.put("\(round)", "v")
      // The engine is not closed.
      let cursor = try engine.cursor(over: EngineRange())
      #expect(try cursor.next())
    }
    #expect(outcome(ofOpening: directory.path) == nil)
  }
}
