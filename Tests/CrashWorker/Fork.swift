import LarderEngine
import LarderTestSupport

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Forks with a store open, and has the child try everything with it.
///
/// What the child meets are lines that begin with "child"; then the parent writes on, and holds
/// the store until it is killed.
enum Fork {
  static func run(in path: String) throws(EngineError) {
    var engine: LevelDBEngine? = try LevelDBEngine(at: path)
    var cursor = try engine?.cursor(over: EngineRange())
    for index in 0..<10 { try put("before\(index)", in: engine) }
    _ = try cursor?.next()

    let child = fork()
    if child == 0 {
      tell("get") { () throws(EngineError) in _ = try engine?.get([1].span.bytes) }
      tell("write") { () throws(EngineError) in try put("child", in: engine) }
      tell("flush") { () throws(EngineError) in try engine?.flush() }
      tell("compact") { () throws(EngineError) in try engine?.compact(EngineRange()) }
      tell("next") { () throws(EngineError) in _ = try cursor?.next() }
      tell("cursor") { () throws(EngineError) in _ = try engine?.cursor(over: EngineRange()) }
      tell("open") { () throws(EngineError) in _ = try LevelDBEngine(at: path) }
      tell("open another") { () throws(EngineError) in _ = try LevelDBEngine(at: path + ".child") }
      tell("close") { () throws(EngineError) in try engine?.close() }
      (cursor, engine) = (nil, nil)
      CrashWorker.say("child let go")
      _exit(0)
    }
    var status: Int32 = -1
    waitpid(child, &status, 0)
    CrashWorker.say("child ended with \(status)")
    for index in 0..<10 { try put("after\(index)", in: engine) }
    try engine?.compact(EngineRange())
    try put("last", in: engine)
    CrashWorker.say("ready")
    var byte: UInt8 = 0
    while read(0, &byte, 1) > 0 {}
    try engine?.close()
    withExtendedLifetime(cursor) {}
  }

  private static func put(_ key: String, in engine: LevelDBEngine?) throws(EngineError) {
    var batch = WriteBatch()
    batch.put(Array(key.utf8).span.bytes, Array("value".utf8).span.bytes)
    try engine?.write(&batch, synced: false)
  }

  private static func tell(_ what: String, _ body: () throws(EngineError) -> Void) {
    do throws(EngineError) {
      try body()
      CrashWorker.say("child \(what): done")
    } catch {
      CrashWorker.say("child \(what): \(error)")
    }
  }

  /// Swift hides it, because a child that runs on cannot use what needs other threads.
  private static func fork() -> pid_t {
    #if canImport(Darwin)
      let everywhere = UnsafeMutableRawPointer(bitPattern: -2)
    #else
      let everywhere: UnsafeMutableRawPointer? = nil
    #endif
    guard let symbol = dlsym(everywhere, "fork") else { return -1 }
    return unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
  }
}
