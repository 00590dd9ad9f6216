#if os(Linux)
  import Foundation
  import Synchronization

  /// A thread for whose sleep another one can wait.
  package final class SleepingThread: Sendable {
    /// The thread's folder in `/proc`.
    private let path = Mutex<String?>(nil)

    package init() {}

    /// Makes it the calling thread.
    ///
    /// When the thread is woken from then on, the system lets the thread that wakes it run on.
    package func becomeCurrent() {
      var parameters = sched_param()
      // SCHED_BATCH, which Swift does not import.
      sched_setscheduler(0, 3, &parameters)
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
