import Foundation
import Larder
import LarderTestSupport

/// Fills a cache, drops it and creates it again, forever, with keys of another kind each time.
///
/// Prints "saved N" from time to time, and "dropped N" after each drop: from then on no cache has a
/// value up to N. A cache with integer keys has even values, one with text keys odd ones.
enum Dropping {
  static func run(in path: String, first: Int) {
    do {
      var options = Store.Options()
      options.writeBufferBytes = 64 << 10
      let store = try Store(at: URL(filePath: path), options: options)
      try store.drop(cache: "a")
      var value = first
      while true {
        value += 1
        if value.isMultiple(of: 2) {
          let cache = try store.cache("a", of: Int.self, keyedBy: Int.self, byteBudget: 1 << 20)
          try fill(key: { $0 }, cache, with: value)
        } else {
          let cache = try store.cache("a", of: Int.self, keyedBy: String.self)
          try fill(key: { "\($0)" }, cache, with: value)
        }
        try store.drop(cache: "a")
        CrashWorker.say("dropped \(value)")
      }
    } catch {
      CrashWorker.say("\(error)")
    }
  }

  private static func fill<Key>(
    key: (Int) -> Key, _ cache: Cache<Key, Int>, with value: Int
  ) throws {
    for number in 0..<400 {
      try cache.save(value, for: key(number))
      if number.isMultiple(of: 100) { CrashWorker.say("saved \(value)") }
    }
  }
}
