import Foundation
import Larder
import LarderTestSupport
import Testing

/// A temporary lack of descriptors, threads or permissions causes typed errors and no loss.
@Suite struct HardshipTests {
  /// The calls of a worker, parsed from its output.
  private struct Report {
    var done: [String: Int] = [:]
    var failed: [String: [String]] = [:]
    var written: Set<String> = []
    var others: [String] = []

    init(_ arguments: [String], withSegments: Bool) throws {
      var worker = try ChildProcess(
        "CrashWorker", arguments + CrashTests.flags(withSegments: withSegments))
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

  private func expectAllWritten(
    _ report: Report, in path: String, withSegments: Bool
  ) throws {
    let engine = try LevelDBEngine(
      at: path, options: CrashTests.options(withSegments: withSegments))
    #expect(engine.recovery == nil)
    let entries = try engine.entries()
    #expect(entries.allSatisfy { isIntact($0.value, key: $0.key) })
    let found = Set(entries.map { String(decoding: $0.key, as: UTF8.self) })
    #expect(report.written.subtracting(found) == [])
    try engine.close()
  }

  private func expect(_ report: Report, fails calls: Set<String>, as word: String) {
    #expect(Set(report.failed.keys).isSuperset(of: calls), "\(report.failed.keys)")
    for error in report.failed.values.joined() {
      // A write reports its own failure, or that an earlier failure disabled writes.
      #expect(error.hasPrefix("io(") || error.hasPrefix("writesDisabled("), "\(error)")
      #expect(error.contains(word), "\(error)")
    }
  }

  @Test(
    "Without free file descriptors calls fail with typed errors, and later work.",
    arguments: [false, true])
  func fileDescriptors(withSegments: Bool) throws {
    let directory = try TemporaryDirectory()
    let report = try Report(["files", directory.path("store")], withSegments: withSegments)
    // If no payload can be saved, LevelDB's memory stays empty, and there is nothing to compact.
    expect(
      report,
      fails: Set(["get", "scan", "write", "flush", "open"] + (withSegments ? [] : ["compact"])),
      as: "Too many open")
    // A failed opening leaves no file open.
    let spare = report.others.first { $0.hasPrefix("spare") } ?? ""
    #expect(report.others == ["good", spare, "good", "end"])
    #expect(report.failed["open"]?.count ?? 0 > 3)
    try expectAllWritten(report, in: directory.path("store"), withSegments: withSegments)
  }

  @Test(
    "Without a free thread opening fails with a typed error, and later works.",
    arguments: [false, true])
  func noThreads(withSegments: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    // The superuser may have any number of threads, so another user runs the worker. No account
    // has this number, so no other process counts toward the limit.
    let stranger: UInt32 = 64_123
    if isSuperuser { give(path, toUser: stranger) }
    let report = try Report(
      (isSuperuser ? ["--uid", "\(stranger)"] : []) + ["threads", path], withSegments: withSegments)
    #expect(report.failed["open"]?.count == 3)
    expect(report, fails: ["open"], as: "no thread can be started")
    #expect(report.others == ["good", "good", "end"])
    try expectAllWritten(report, in: path, withSegments: withSegments)
  }

  @Test(
    "Without permissions calls fail with typed errors, and later work.", arguments: [false, true])
  func permissions(withSegments: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let nobody: UInt32 = 65_534
    if isSuperuser { give(path, toUser: nobody) }
    // The superuser has all permissions, so another user runs the worker.
    let report = try Report(
      (isSuperuser ? ["--uid", "\(nobody)"] : []) + ["rights", path], withSegments: withSegments)
    expect(report, fails: ["get", "scan", "flush", "compact", "open"], as: "Permission denied")
    #expect(report.others == ["good", "end"])
    try expectAllWritten(report, in: path, withSegments: withSegments)
  }
}
