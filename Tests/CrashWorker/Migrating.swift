import Foundation
import Larder

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Migrates the numbers of a store, which version 1 stored as text.
///
/// For each byte of its input it reads the next numbers, and prints "at" with their count so far.
/// Its last line is "done" with the counts of migrated and current numbers.
enum Migrating {
  /// The number of values per input byte.
  private static let stride = 64

  static func run(in path: String) {
    var options = Store.Options()
    // Small, so that tables are written and compacted often.
    options.writeBufferBytes = 64 << 10
    options.advanced.maxFileBytes = 1 << 20
    // The reader runs only on the thread that migrates.
    nonisolated(unsafe) var count = 0
    let schema = Schema<Int>(version: 3).reading(1, as: String.self) { text in
      count += 1
      if count.isMultiple(of: stride) {
        var byte: UInt8 = 0
        guard read(0, &byte, 1) == 1 else { throw NotANumber() }
        CrashWorker.say("at \(count)")
      }
      guard let number = Int(text) else { throw NotANumber() }
      return number
    }
    do {
      let store = try Store(at: URL(filePath: path), options: options)
      let numbers = try store.cache(
        "numbers", of: Int.self, keyedBy: Int.self, lifetime: .days(3000), schema: schema)
      let report = try store.migrate(numbers)
      CrashWorker.say("done \(report.migrated) \(report.current)")
      try store.close()
    } catch {
      CrashWorker.say("\(error)")
    }
  }
}

private struct NotANumber: Error {}
