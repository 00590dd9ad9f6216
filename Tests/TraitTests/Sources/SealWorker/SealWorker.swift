import Crypto
import Foundation
import Larder

/// Opens a sealed store again and again, each time with another key, until it is killed.
///
/// Its arguments are the directory of the store, the number of the key that opens it, and the
/// number of the value that was saved last. Each time it replaces the key, saves values, seals
/// everything again and compacts the store. It writes a line before each step, and
/// "saved KEY NUMBER" after each save.
@main struct SealWorker {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, var number = Int(arguments[2]), var count = Int(arguments[3])
    else { return say("arguments") }
    let directory = URL(filePath: arguments[1])
    // It ends with its input.
    Thread.detachNewThread {
      while readLine() != nil {}
      exit(0)
    }
    do {
      while true {
        say("replacing \(number)")
        var options = Store.Options()
        options.encryption = .key(
          id: "\(number + 1)", key(number + 1), replacing: ["\(number)": key(number)])
        options.writeBufferBytes = 64 << 10
        let store = try Store(at: directory, options: options)
        number += 1
        say("replaced \(number)")
        let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
        for key in 0..<20 {
          count += 1
          try cache.save(text(count, for: key), for: key, validator: Validator("\(count)"))
          say("saved \(key) \(count)")
        }
        say("sealing")
        let report = try store.reseal()
        guard report.isComplete else { return say("not complete: \(report)") }
        say("compacting")
        try await store.compact()
        try store.close()
      }
    } catch {
      say("fault: \(error)")
    }
  }

  /// A value that tells its number; every other key has large ones.
  static func text(_ number: Int, for key: Int) -> String {
    "\(number) " + String(repeating: "marker-" + "8d1f4c27-plain ", count: key % 2 == 0 ? 1 : 500)
  }

  static func key(_ number: Int) -> SymmetricKey {
    SymmetricKey(data: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32))
  }

  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}
