#if os(Linux)
  import Foundation
  import LarderTestSupport
  import Synchronization
  import Testing

  @testable import Larder

  /// Any thread can take a released lock, even if another thread waits for it.
  @Suite struct ReleasedLockTests {
    @Test("A running thread takes a lock that is released before a sleeping one is awake.")
    func released() {
      // The sleeping thread may be awake in time once, but not each time.
      #expect((0..<100).contains { _ in takesReleasedLock() })
    }

    /// Whether a thread can take a lock again at once, although another one has waited for it.
    private func takesReleasedLock() -> Bool {
      let lock = Lock(())
      let (isTaken, hasTried) = (Flag(), Flag())
      let sleeper = Mutex<String?>(nil)
      let wasTakenAgain = Atomic(false)
      onThreads(2) { thread in
        if thread == 0 {
          lock.withLock { _ in
            isTaken.raise()
            while !isAsleep(sleeper.withLock { $0 }) {}
          }
          let again: Void? = lock.withLockIfAvailable { _ in }
          wasTakenAgain.store(again != nil, ordering: .relaxed)
          hasTried.raise()
        } else {
          isTaken.wait()
          sleeper.withLock { $0 = threadPath }
          lock.withLock { _ in hasTried.wait() }
        }
      }
      return wasTakenAgain.load(ordering: .relaxed)
    }

    /// The folder of the calling thread in `/proc`.
    private var threadPath: String? {
      guard let path = realpath("/proc/thread-self", nil) else { return nil }
      defer { free(path) }
      return String(cString: path)
    }

    /// Whether the thread of a folder waits for something.
    private func isAsleep(_ thread: String?) -> Bool {
      guard let thread else { return false }
      let line = FileManager.default.contents(atPath: "\(thread)/stat") ?? Data()
      // The state follows the thread's name, which is in parentheses.
      return String(decoding: line, as: UTF8.self).split(separator: ") ").last?.first == "S"
    }
  }
#endif
