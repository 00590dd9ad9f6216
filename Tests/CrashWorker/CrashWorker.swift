// The second process of the tests, which holds a store, tries to open one, or writes until it is
// killed. It reports line by line on standard output, unbuffered.

import Larder
import LarderTestSupport

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@main
struct CrashWorker {
  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "--uid", arguments.count > 1, let user = UInt32(arguments[1]) {
      guard setgid(user) == 0, setuid(user) == 0 else { return say("cannot become \(user)") }
      arguments.removeFirst(2)
    }
    if usesSegments { arguments.removeAll { $0 == segmentsFlag } }
    do throws(StoreError) {
      switch (arguments.first, arguments.dropFirst().first, arguments.last.flatMap(UInt64.init)) {
      case ("hold", let path?, _): try hold(path)
      case ("open", let path?, _): try tryToOpen(path)
      case ("stay", let path?, _): stay(path)
      case ("parent", let path?, _): beParent(path)
      case ("write", let path?, let seed?): try writeForever(to: path, threads: 1, seed: seed)
      case ("storm", let path?, let seed?): try writeForever(to: path, threads: 8, seed: seed)
      case ("fork", let path?, _): try Fork.run(in: path)
      case ("files", let path?, _): try Hardship.fewFiles(in: path)
      case ("rights", let path?, _): try Hardship.noRights(in: path)
      case ("threads", let path?, _): try Hardship.noThreads(in: path)
      case ("full", let path?, let limit?): try FullDisk.run(in: path, limit: limit)
      case ("migrate", let path?, _): Migrating.run(in: path)
      case ("sweep", let path?, let seed?): Sweeping.run(in: path, seed: seed)
      case ("evict", let path?, let first?): Evicting.run(in: path, first: Int(first))
      case ("drop", let path?, let first?): Dropping.run(in: path, first: Int(first))
      case ("compact", let path?, let last?): Compacting.run(in: path, after: Int(last))
      case ("tag", let path?, let seed?): Tagging.run(in: path, seed: seed)
      case ("backup", let path?, _): try BackingUp.run(in: path, restoring: false)
      case ("restore", let path?, _): try BackingUp.run(in: path, restoring: true)
      case ("follow", let path?, _): Following.run(in: path)
      case ("control", let path?, _): Following.run(in: path, accepting: true)
      case ("connect", let path?, _): Following.connect(to: path)
      default:
        say(
          "usage: [--uid N] [--segments] hold DIR | open DIR | fork DIR | files DIR | rights DIR "
            + "| stay FILE | parent FILE BUNDLE | threads DIR | write DIR SEED | storm DIR SEED "
            + "| full DIR LIMIT | migrate DIR | sweep DIR SEED "
            + "| evict DIR FIRST | drop DIR FIRST | tag DIR SEED | compact DIR LAST "
            + "| backup DIR | restore DIR | follow DIR | control DIR | connect DIR")
      }
    } catch {
      say(error.line)
    }
  }

  /// Keeps the store open until standard input ends.
  private static func hold(_ path: String) throws(StoreError) {
    let engine = try LevelDBEngine(at: path)
    say("ready")
    var byte: UInt8 = 0
    while read(0, &byte, 1) > 0 {}
    try engine.close()
  }

  /// Locks a file, and waits until it is killed.
  private static func stay(_ path: String) {
    let file = open(path, O_RDWR | O_CREAT, 0o600 as mode_t)
    say(flock(file, LOCK_EX | LOCK_NB) == 0 ? "ready" : "cannot lock \(path)")
    while true { pause() }
  }

  /// Starts a child that locks a file, and waits until it is killed.
  private static func beParent(_ path: String) {
    do {
      var child = try ChildProcess("CrashWorker", ["stay", path])
      say(child.readLine() ?? "the child ended")
      while true {
        pause()
        _ = child.id
      }
    } catch {
      say("\(error)")
    }
  }

  private static func tryToOpen(_ path: String) throws(StoreError) {
    try LevelDBEngine(at: path).close()
    say("opened")
  }

  private static let segmentsFlag = "--segments"
  private static let usesSegments = CommandLine.arguments.contains(segmentsFlag)

  /// With `--segments` each payload is kept in a segment, and segments are collected all the time.
  static var options: LevelDBOptions {
    var options = LevelDBOptions()
    guard usesSegments else { return options }
    options.separation = ValueSeparation(
      keySpace: UInt8(ascii: "t"), flagOffset: 20, flag: 0x10, stamp: .test, thresholdBytes: 1)
    options.segmentBytes = 16 << 10
    return options
  }

  /// Writes batches forever, on several threads that have keys of their own.
  ///
  /// Prints a line after each batch, with its sequence, the keys that it put, and the keys that it
  /// removed after a minus sign. All batches of every other thread are synced.
  private static func writeForever(
    to path: String, threads: Int, seed: UInt64
  ) throws(StoreError) {
    var options = options
    // Small, so that tables are written and compacted often.
    options.writeBufferBytes = 64 << 10
    options.maxFileBytes = 1 << 20
    let engine = try LevelDBEngine(at: path, options: options)
    onThreads(threads) { thread in
      var random = SplitMix64(seed: seed &+ UInt64(thread))
      do throws(StoreError) {
        while true {
          let waits = !thread.isMultiple(of: 2) || Int.random(in: 0..<64, using: &random) == 0
          try writeBatch(to: engine, keys: "t\(thread)-", synced: waits, &random)
        }
      } catch {
        say("thread \(thread): \(error)")
      }
    }
  }

  private static func writeBatch(
    to engine: LevelDBEngine, keys: String, synced: Bool, _ random: inout SplitMix64
  ) throws(StoreError) {
    var batch = WriteBatch()
    let first = Int.random(in: 0..<50, using: &random)
    let rows = Int.random(in: 1...8, using: &random)
    let removesFirst = rows > 1 && Bool.random(using: &random)
    let names = (first..<(first + rows)).map { "\(keys)\($0)" }
    let line = (removesFirst ? "-" : "") + names.joined(separator: " ")
    // Each value lists all keys of its batch.
    let value =
      [UInt8](repeating: 0, count: Stamp.test.end) + Array("\(line)|".utf8) + random.bytes(100)
    for (row, name) in names.enumerated() {
      let key = Array(name.utf8)
      if row == 0, removesFirst {
        batch.remove(key.span.bytes)
      } else {
        put(key, value, in: &batch)
      }
    }
    let commit = try engine.write(&batch, synced: synced)
    say("\(commit.sequence) \(line)")
  }

  /// Adds the put of a value that begins with room for its stamp; the rest is its payload.
  static func put(_ key: [UInt8], _ value: [UInt8], in batch: inout WriteBatch) {
    batch.putSeparable(key.span.bytes, stamp: .test) { buffer in
      buffer.append(value)
      return value.count - Stamp.test.end
    }
  }

  static func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
  }
}

extension Stamp {
  /// The stamp in the worker's values; the engine's tests have the same one.
  static let test = Stamp(at: 24)
}
