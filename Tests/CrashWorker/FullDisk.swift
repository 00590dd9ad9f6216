import Larder
import LarderTestSupport

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Writes on eight threads to a store whose files may not grow beyond a limit.
///
/// Each acknowledged write is a line with its sequence and its key. Once a write has failed on
/// every thread, the limit is removed, and 200 more writes follow.
enum FullDisk {
  static func run(in path: String, limit: UInt64) throws(StoreError) {
    signal(SIGXFSZ, SIG_IGN)
    var options = CrashWorker.options
    // No limit lets a segment become full.
    options.segmentBytes = 2 << 20
    let engine = try LevelDBEngine(at: path, options: options)
    setLimit(rlim_t(limit))
    onThreads(8) { thread in
      var index = 0
      while write("t\(thread)-\(index)", to: engine) { index += 1 }
      _ = write("t\(thread)-again", to: engine)
    }
    setLimit(nil)
    onThreads(8) { thread in
      for index in 0..<25 {
        // The first writes may report a compaction that failed under the limit.
        for _ in 0..<100_000 {
          if write("t-later\(thread)-\(index)", to: engine) { break }
          sched_yield()
        }
      }
    }
    try engine.close()
    CrashWorker.say("done")
  }

  /// Returns false if the write failed, which prints a line, too.
  private static func write(_ key: String, to engine: LevelDBEngine) -> Bool {
    var random = SplitMix64(seed: UInt64(key.utf8.count))
    let value = [UInt8](repeating: 0, count: Stamp.test.end) + random.bytes(1000)
    var batch = WriteBatch()
    CrashWorker.put(Array(key.utf8), value, in: &batch)
    do throws(StoreError) {
      let commit = try engine.write(&batch, synced: false)
      CrashWorker.say("\(commit.sequence) \(key)")
      return true
    } catch {
      CrashWorker.say("failed \(key) \(error.line)")
      return false
    }
  }

  /// Sets the maximum file size; nil sets the system's maximum.
  private static func setLimit(_ bytes: rlim_t?) {
    #if canImport(Darwin)
      let resource = RLIMIT_FSIZE
    #else
      let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return CrashWorker.say("no limit to read") }
    limit.rlim_cur = bytes ?? limit.rlim_max
    guard setrlimit(resource, &limit) == 0 else { return CrashWorker.say("no limit to set") }
  }
}
