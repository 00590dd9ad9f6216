import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Saves forever into a cache with a budget, one that is cleared repeatedly, and one that keeps
/// everything.
///
/// Prints "kept N" for each number in the last cache, and "cleared N" after each clear, from when
/// on the cleared cache has only numbers from N on.
enum Evicting {
  static let budget = 100_000

  static func run(in path: String, first: Int) {
    var options = Store.Options()
    // Small, so that tables are written and compacted often.
    options.writeBufferBytes = 64 << 10
    options.advanced.maxFileBytes = 1 << 20
    do {
      let store = try Store(at: URL(filePath: path), options: options)
      let few = try store.cache(
        "few", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: budget)
      let cleared = try store.cache(
        "cleared", of: Int.self, keyedBy: Int.self, byteBudget: budget)
      let kept = try store.cache("kept", of: Int.self, keyedBy: Int.self, lifetime: .unlimited)
      onThreads(3) { thread in
        var random = SplitMix64(seed: UInt64(first + thread))
        var number = first
        do {
          while true {
            number += 1
            switch thread {
            case 0:
              let bytes = Int.random(in: 0...2000, using: &random)
              let key = Int.random(in: 0..<1000, using: &random)
              try few.save(Data(repeating: 7, count: bytes), for: key)
              if number.isMultiple(of: 7) { _ = try few.value(for: key) }
              if number.isMultiple(of: 11) { try few.remove(key / 2) }
            case 1:
              try cleared.save(number, for: number % 100)
              guard number.isMultiple(of: 40) else { continue }
              try cleared.removeAll()
              CrashWorker.say("cleared \(number + 1)")
            default:
              try kept.save(number, for: number)
              CrashWorker.say("kept \(number)")
            }
          }
        } catch {
          CrashWorker.say("thread \(thread): \(error)")
        }
      }
    } catch {
      CrashWorker.say("\(error)")
    }
  }
}
