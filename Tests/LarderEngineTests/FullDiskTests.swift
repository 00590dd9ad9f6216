import Larder
import LarderTestSupport
import Testing

/// Acknowledged writes survive a file size limit of the real system.
extension WriteFailureTests {
  @Test(
    "Acknowledged writes stay if files may not grow.",
    arguments: [40_000, 150_000, 300_000, 1_000_000], [false, true])
  func fileSizeLimit(limit: Int, withSegments: Bool) throws {
    let directory = try TemporaryDirectory()
    var worker = try ChildProcess(
      "CrashWorker",
      ["full", directory.path, "\(limit)"] + CrashTests.flags(withSegments: withSegments))
    var acknowledged: [String: UInt64] = [:]
    var failed = 0
    var last = ""
    while let line = worker.readLine() {
      last = line
      let words = line.split(separator: " ")
      if words[0] == "failed" {
        failed += 1
        #expect(["io", "writesDisabled"].contains(words[2].prefix { $0 != "(" }), "\(line)")
      } else if let sequence = UInt64(words[0]) {
        acknowledged[String(words[1])] = sequence
      }
    }
    #expect(last == "done")
    #expect(failed >= 8)
    #expect(acknowledged.keys.count { $0.hasPrefix("t-later") } == 200)

    let engine = try LevelDBEngine(
      at: directory.path, options: CrashTests.options(withSegments: withSegments))
    var found: [String: UInt64] = [:]
    for entry in try engine.entries() {
      #expect(isIntact(entry.value, key: entry.key))
      found[String(decoding: entry.key, as: UTF8.self)] = sequence(of: entry.value)
    }
    for (key, sequence) in acknowledged { #expect(found[key] == sequence, "\(key)") }
    try engine.close()
  }
}
