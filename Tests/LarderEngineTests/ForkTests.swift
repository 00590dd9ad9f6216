import AcceptanceRows
import Larder
import LarderTestSupport
import Testing

/// A forked child process cannot use or harm its parent's store.
@Suite(.acceptance) struct ForkTests {
  @Test(
    "A forked child's calls are refused, and the parent's still work.", arguments: [false, true])
  func fork(withSegments: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    var worker = try ChildProcess(
      "CrashWorker", ["fork", path] + CrashTests.flags(withSegments: withSegments))
    var lines: [String] = []
    while let line = worker.readLine() {
      lines.append(line)
      if line == "ready" { break }
    }

    let refused = "\(StoreError.locked(pid: worker.id))"
    for what in ["get", "write", "flush", "compact", "next", "cursor"]
      + (withSegments ? ["collect"] : [])
    {
      #expect(lines.contains("child \(what): \(refused)"), "\(lines)")
    }
    let open = "child read from memory: The store is already open in process \(worker.id)."
    #expect(lines.contains { $0.hasPrefix(open) }, "\(lines)")
    // The child lacks LevelDB's background thread, without which writes would block.
    for what in ["open", "open another"] {
      #expect(lines.contains { $0.hasPrefix("child \(what): io(") }, "\(lines)")
    }
    let end = ["child close: done", "child released the store", "child ended with 0", "ready"]
    #expect(lines.suffix(4) == end)

    // The parent still has its lock after the child's exit.
    #expect(throws: StoreError.locked(pid: worker.id)) { try LevelDBEngine(at: path) }
    worker.kill()
    let engine = try LevelDBEngine(
      at: path, options: CrashTests.options(withSegments: withSegments))
    #expect(engine.recovery == nil)
    let names = (0..<10).flatMap { ["t-after\($0)", "t-before\($0)"] } + ["t-last"]
    let entries = try engine.entries()
    #expect(entries.map(\.key) == names.sorted().map(bytes))
    for entry in entries {
      #expect(isIntact(entry.value, key: entry.key))
      #expect(Array(entry.value[Stamp.test.end...]) == bytes("value"))
    }
    try engine.close()
  }
}
