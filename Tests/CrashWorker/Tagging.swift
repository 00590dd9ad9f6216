import Foundation
import Larder
import LarderTestSupport
import LarderTesting

/// Saves, updates, invalidates, removes ranges, reads and sweeps, forever.
///
/// Prints each change before it is made, and "done" after it:
///
/// - "save K N T": saves N under key K with tag T
/// - "invalidate T"
/// - "update K": adds 1 to the value under key K, or saves 1
/// - "remove K": removes the range of the keys that begin with K
enum Tagging {
  static func run(in path: String, seed: UInt64) {
    do {
      var random = SplitMix64(seed: seed)
      var options = Store.Options()
      options.writeBufferBytes = 64 << 10
      let clock = ManualClock()
      options.clock = clock
      let store = try Store(at: URL(filePath: path), options: options)
      let cache = try store.cache(
        "a", of: Int.self, lifetime: .unlimited, expiry: .sliding, byteBudget: 1 << 24)
      // Sliding restarts own lifetimes; no entry expires meanwhile.
      let lifetime = Lifetime.hours(1_000_000)
      for number in 1... {
        let key =
          "\(Int.random(in: 0..<4, using: &random))\(Int.random(in: 0..<50, using: &random))"
        let tag = "t\(Int.random(in: 0..<3, using: &random))"
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<50:
          try change("save \(key) \(number) \(tag)") {
            try cache.save(number, for: key, lifetime: lifetime, tags: [tag, "all"])
          }
        case 50..<75:
          try change("update \(key)") { _ = try cache.update(key) { $0 = ($0 ?? 0) + 1 } }
        case 75..<78:
          try change("invalidate \(tag)") {
            try store.invalidate(tag: tag, durability: .processCrash)
          }
        case 78..<80:
          let first = String(key.prefix(1))
          try change("remove \(first)") { try cache.remove(in: .prefix(first)) }
        case 80..<82: try store.sweep()
        case 82:
          try store.suspend()
          try store.resume()
        default: _ = try cache.value(for: key)
        }
        clock.advance(by: .seconds(3600 * 100))
      }
    } catch {
      CrashWorker.say("\(error)")
    }
  }

  private static func change(_ words: String, _ body: () throws -> Void) throws {
    CrashWorker.say(words)
    try body()
    CrashWorker.say("done")
  }
}
