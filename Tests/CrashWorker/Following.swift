import Foundation
import Larder

/// Changes a store that publishes its statistics, as the lines of standard input say.
///
/// - "save KEY VALUE", "remove KEY", "read KEY"
/// - "fill COUNT": saves COUNT values of 1,000 bytes, which fills logs
///
/// Prints "ready", and "done" after each line. It closes the store at the end of the input.
enum Following {
  static func run(in path: String) {
    do {
      var options = Store.Options()
      options.publishesStatistics = true
      options.writeBufferBytes = 64 << 10
      let store = try Store(at: URL(filePath: path), options: options)
      let cache = try store.cache("followed", of: String.self, lifetime: .days(7))
      CrashWorker.say("ready")
      while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        switch (words.first, words.dropFirst().first) {
        case ("save", let key?): try cache.save(words.last ?? "", for: key)
        case ("remove", let key?): try cache.remove(key)
        case ("read", let key?): _ = try cache.value(for: key)
        case ("fill", let count?):
          for number in 0..<(Int(count) ?? 0) {
            try cache.save(String(repeating: "x", count: 1000), for: "filler \(number)")
          }
        default: CrashWorker.say("unknown: \(line)")
        }
        CrashWorker.say("done")
      }
      try store.close()
      CrashWorker.say("closed")
    } catch {
      CrashWorker.say("\(error)")
    }
  }
}
