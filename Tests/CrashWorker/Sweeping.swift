import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Sweeps a store of numbers, and meanwhile saves some of those that are being swept.
///
/// It says each number that it has saved; its last line says "done".
enum Sweeping {
  static func run(in path: String, seed: UInt64) {
    var options = Store.Options()
    // Small, so that tables are written and compacted all the time.
    options.writeBufferBytes = 64 << 10
    options.maxFileBytes = 1 << 20
    do {
      let store = try Store(at: URL(filePath: path), options: options)
      let numbers = try store.cache(
        "numbers", of: Int.self, keyedBy: Int.self, lifetime: .days(10))
      let isSwept = Atomic(false)
      onThreads(2) { thread in
        var random = SplitMix64(seed: seed)
        do {
          if thread == 0 {
            // So that it can be killed before, too.
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
