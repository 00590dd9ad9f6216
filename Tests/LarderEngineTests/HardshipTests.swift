import Foundation
import LarderEngine
import LarderTestSupport
import Testing

/// What the system takes away from a store for a while costs typed errors, and nothing for good.
@Suite struct HardshipTests {
  /// What a worker did, by the lines that it wrote.
  private struct Told {
    var done: [String: Int] = [:]
    var failed: [String: [String]] = [:]
    var written: Set<String> = []
    var others: [String] = []

    init(_ arguments: [String]) throws {
      var worker = try ChildProcess("CrashWorker", arguments)
      while let line = worker.readLine() {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        switch words.first {
        case "done": done[words[1], default: 0] += 1
        case "failed": failed[words[1], default: []].append(words[2])
        case "wrote": written.insert(words[1])
        default: others.append(line)
        }
      }
    }
  }

  private func expectAllThere(_ told: Told, in path: String) throws {
    let engine = try LevelDBEngine(at: path)
    #expect(engine.recovery == nil)
    let found = Set(try engine.entries().map { String(decoding: $0.key, as: UTF8.self) })
    #expect(told.written.subtracting(found) == [])
    try engine.close()
  }

  private func expect(_ told: Told, fails calls: Set<String>, as word: String) {
    #expect(Set(told.failed.keys).isSuperset(of: calls), "\(told.failed.keys)")
    for error in told.failed.values.joined() {
      // A write names what stopped it, or that an earlier one was stopped.
      #expect(error.hasPrefix("io(") || error.hasPrefix("writesDisabled("), "\(error)")
      #expect(error.contains(word), "\(error)")
    }
  }

  @Test func noMoreFileDescriptors() throws {
    let directory = try TemporaryDirectory()
    let told = try Told(["files", directory.path("store")])
    expect(told, fails: ["get", "scan", "write", "flush", "compact", "open"], as: "Too many open")
    // Nothing was left open by an opening that failed.
    let spare = told.others.first { $0.hasPrefix("spare") } ?? ""
    #expect(told.others == ["good", spare, "good", "end"])
    #expect(told.failed["open"]?.count ?? 0 > 3)
    try expectAllThere(told, in: directory.path("store"))
  }

  @Test("Without a thread to be had, opening fails with a typed error, and later works.")
  func noThreads() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    // The superuser may have any number of threads, so that somebody else tries. Nobody else's
    // threads count as those of this user: the number is one that no account has.
    let stranger: UInt32 = 64_123
    if isSuperuser { give(path, toUser: stranger) }
    let told = try Told((isSuperuser ? ["--uid", "\(stranger)"] : []) + ["threads", path])
    #expect(told.failed["open"]?.count == 3)
    expect(told, fails: ["open"], as: "no thread can be started")
    #expect(told.others == ["good", "good", "end"])
    try expectAllThere(told, in: path)
  }

  @Test func noMoreRightsToTheDirectory() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let nobody: UInt32 = 65_534
    if isSuperuser { give(path, toUser: nobody) }
    // The superuser has rights to everything, so somebody else tries.
    let told = try Told((isSuperuser ? ["--uid", "\(nobody)"] : []) + ["rights", path])
    expect(told, fails: ["get", "scan", "flush", "compact", "open"], as: "Permission denied")
    #expect(told.others == ["good", "end"])
    try expectAllThere(told, in: path)
  }
}
