import Foundation
import Larder

/// Changes a store that publishes its statistics, as the lines of standard input say.
///
/// - "save KEY VALUE", "remove KEY", "read KEY"
/// - "fill COUNT": saves COUNT values of 1,000 bytes, which fills logs
/// - "suspend", "resume"
/// - "fork": makes a child process, which waits for the end of the input, too
/// - "limit COUNT": allows COUNT more open files
/// - "open": opens a file, and closes it
///
/// All values have the tag "t". With `accepting`, the store accepts commands of other processes.
///
/// Prints "ready", and "done" after each line. It closes the store at the end of the input.
enum Following {
  static func run(in path: String, accepting: Bool = false) {
    do {
      var options = Store.Options()
      options.control = accepting
      options.publishesStatistics = true
      options.writeBufferBytes = 64 << 10
      let store = try Store(at: URL(filePath: path), options: options)
      let cache = try store.cache("followed", of: String.self, lifetime: .days(7))
      CrashWorker.say("ready")
      while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        switch (words.first, words.dropFirst().first) {
        case ("save", let key?): try cache.save(words.last ?? "", for: key, tags: ["t"])
        case ("remove", let key?): try cache.remove(key)
        case ("read", let key?): _ = try cache.value(for: key)
        case ("fill", let count?):
          for number in 0..<(Int(count) ?? 0) {
            try cache.save(String(repeating: "x", count: 1000), for: "filler \(number)")
          }
        case ("suspend", _): try store.suspend()
        case ("resume", _): try store.resume()
        case ("fork", _):
          if Fork.fork() == 0 {
            var byte: UInt8 = 0
            while read(0, &byte, 1) > 0 {}
            _exit(0)
          }
        case ("limit", let count?): Hardship.allowFiles(Int(count) ?? 0)
        case ("open", _):
          let file = open("/dev/null", O_RDONLY)
          if file < 0 { CrashWorker.say("no descriptor is free") } else { close(file) }
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

  /// Prints what a client of the store's socket gets as the greeting.
  static func connect(to path: String) {
    do throws(ControlClient.Failure) {
      var client = try ControlClient(in: path, waiting: 60)
      CrashWorker.say(String(decoding: try client.receive(), as: UTF8.self))
    } catch {
      CrashWorker.say("\(error)")
    }
  }
}
