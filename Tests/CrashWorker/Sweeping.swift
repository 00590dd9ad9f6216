import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Sweeps a store of numbers, and at the same time saves some of the expired ones again.
///
/// Prints each number that it has saved; its last line is "done".
enum Sweeping {
  static func run(in path: String, seed: UInt64) {
    var options = Store.Options()
    // Small, so that tables are written and compacted often.
    options.writeBufferBytes = 64 << 10
    options.advanced.maxFileBytes = 1 << 20
    do {
      let store = try Store(at: URL(filePath: path), options: options)
      let numbers = try store.cache(
        "numbers", of: Int.self, keyedBy: Int.self, lifetime: .days(10))
      let isSwept = Atomic(false)
      onThreads(2) { thread in
        var random = SplitMix64(seed: seed)
        do {
          if thread == 0 {
            // A write before the sweep, so that the process can be killed before it, too.
            try numbers.save(0, for: 0)
            try store.sweep()
            isSwept.store(true, ordering: .releasing)
          }
          while thread == 1, !isSwept.load(ordering: .acquiring) {
            let number = Int.random(in: 1..<20_000, using: &random)
            try numbers.save(-number, for: number)
            CrashWorker.say("\(number)")
          }
        } catch {
          CrashWorker.say("thread \(thread): \(error)")
        }
      }
      CrashWorker.say("done")
      try store.close()
    } catch {
      CrashWorker.say("\(error)")
    }
  }
}
