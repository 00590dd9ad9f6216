#if os(Linux)
  import CTestSupport
  import Foundation
  import Synchronization

  /// A thread for whose sleep another one can wait.
  package final class SleepingThread: Sendable {
    /// The thread's folder in `/proc`.
    private let path = Mutex<String?>(nil)

    package init() {}

    /// Makes it the calling thread.
    ///
    /// From then on it does not interrupt the thread that wakes it.
    package func becomeCurrent() {
      become_batch_thread()
      let current = realpath("/proc/thread-self", nil)
      defer { free(current) }
      path.withLock { $0 = current.map { String(cString: $0) } }
    }

    /// Waits until the thread waits for something.
    package func waitUntilAsleep() {
      while !isAsleep {}
    }

    private var isAsleep: Bool {
      guard let path = path.withLock({ $0 }) else { return false }
      let line = FileManager.default.contents(atPath: "\(path)/stat") ?? Data()
      // The state follows the thread's name, which is in parentheses.
      return String(decoding: line, as: UTF8.self).split(separator: ") ").last?.first == "S"
    }
  }
#endif
