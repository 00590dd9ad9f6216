import Foundation
import Larder
import LarderTestSupport

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Forks with an open store, and tries every call in the child.
///
/// The child's results are lines that begin with "child". Then the parent continues to write, and
/// holds the store until it is killed.
enum Fork {
  static func run(in path: String) throws(StoreError) {
    let numbers = numbersInMemory(path + ".memory")
    var engine: LevelDBEngine? = try LevelDBEngine(at: path, options: CrashWorker.options)
    var cursor = try engine?.cursor(over: EngineRange())
    for index in 0..<10 { try put("t-before\(index)", in: engine) }
    _ = try cursor?.next()

    let child = fork()
    if child == 0 {
      call("get") { () throws(StoreError) in _ = try engine?.get([1].span.bytes) }
      call("write") { () throws(StoreError) in try put("t-child", in: engine) }
      call("flush") { () throws(StoreError) in try engine?.flush() }
      call("compact") { () throws(StoreError) in try engine?.compact(EngineRange()) }
      call("next") { () throws(StoreError) in _ = try cursor?.next() }
      call("cursor") { () throws(StoreError) in _ = try engine?.cursor(over: EngineRange()) }
      call("open") { () throws(StoreError) in
        _ = try LevelDBEngine(at: path, options: CrashWorker.options)
      }
      call("open another") { () throws(StoreError) in _ = try LevelDBEngine(at: path + ".child") }
      call("read from memory") { _ = try numbers?.value(for: "a") }
      call("collect") { () throws(StoreError) in try engine?.collectSegments() }
      call("close") { () throws(StoreError) in try engine?.close() }
      (cursor, engine) = (nil, nil)
      CrashWorker.say("child released the store")
      _exit(0)
    }
    var status: Int32 = -1
    waitpid(child, &status, 0)
    CrashWorker.say("child ended with \(status)")
    for index in 0..<10 { try put("t-after\(index)", in: engine) }
    try engine?.compact(EngineRange())
    try put("t-last", in: engine)
    CrashWorker.say("ready")
    var byte: UInt8 = 0
    while read(0, &byte, 1) > 0 {}
    try engine?.close()
    withExtendedLifetime(cursor) {}
  }

  private static func put(_ key: String, in engine: LevelDBEngine?) throws(StoreError) {
    var batch = WriteBatch()
    let value = [UInt8](repeating: 0, count: Stamp.test.end) + Array("value".utf8)
    CrashWorker.put(Array(key.utf8), value, in: &batch)
    try engine?.write(&batch, synced: false)
  }

  /// A cache of a store of its own, whose only value is in memory.
  private static func numbersInMemory(_ path: String) -> Cache<String, Int>? {
    do {
      let numbers = try Store(at: URL(filePath: path)).cache("numbers", of: Int.self)
      try numbers.save(1, for: "a")
      for _ in 0..<2 { _ = try numbers.value(for: "a") }
      guard numbers.store.statistics.memory.entries == 1 else { return nil }
      return numbers
    } catch {
      CrashWorker.say("\(error)")
      return nil
    }
  }

  private static func call(_ name: String, _ body: () throws -> Void) {
    do {
      try body()
      CrashWorker.say("child \(name): done")
    } catch let error as StoreError {
      CrashWorker.say("child \(name): \(error.line)")
    } catch {
      CrashWorker.say("child \(name): \(error)")
    }
  }

  /// Calls `fork`, which Swift hides because the child lacks all other threads.
  static func fork() -> pid_t {
    #if canImport(Darwin)
      let everywhere = UnsafeMutableRawPointer(bitPattern: -2)
    #else
      let everywhere: UnsafeMutableRawPointer? = nil
    #endif
    guard let symbol = dlsym(everywhere, "fork") else { return -1 }
    return unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
  }
}
