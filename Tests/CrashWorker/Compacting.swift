import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Changes the entries of a cache, and compacts the store on another thread, forever.
///
/// Change N is to the key N % 40. Every third one is a removal; the others save 20,000 bytes and
/// more, whose number and contents tell N. Prints N after the change, and "at" at each step of a
/// compaction, which lets four changes through.
enum Compacting {
  static func run(in path: String, after last: Int) {
    do {
      var options = Store.Options()
      options.compression = false
      options.writeBufferBytes = 64 << 10
      let store = try Store(at: URL(filePath: path), options: options)
      let values = try store.cache("values", of: Data.self, keyedBy: Int.self, coder: .bytes)
      let nextStep = StepFlag()
      Task.detached {
        do {
          while true {
            try await store.compact { _ in
              CrashWorker.say("at")
              nextStep.raise()
            }
          }
        } catch {
          CrashWorker.say("\(error)")
        }
      }
      var number = last
      while true {
        if number.isMultiple(of: 4) { nextStep.wait() }
        number += 1
        if number.isMultiple(of: 3) {
          try values.remove(number % 40)
        } else {
          let byte = UInt8(truncatingIfNeeded: number)
          try values.save(
            Data(repeating: byte, count: 20_000 + number % 1000), for: number % 40)
        }
        CrashWorker.say("\(number)")
      }
    } catch {
      CrashWorker.say("\(error)")
    }
  }
}

/// A flag for the next step of another thread, again and again.
private final class StepFlag: Sendable {
  private let next = Mutex(Flag())

  func raise() {
    next.withLock { next in
      next.raise()
      next = Flag()
    }
  }

  /// Waits for a step that begins after the call.
  func wait() { next.withLock { $0 }.wait() }
}
