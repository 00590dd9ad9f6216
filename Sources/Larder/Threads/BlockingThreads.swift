import Dispatch
import Synchronization

/// Threads on which tasks may block, apart from Swift's cooperative pool.
///
/// A thread is started when a job arrives and no thread is idle, up to ``limit`` threads. Jobs
/// start in the order of their arrival. A thread ends after it was idle for `idleTime`. A queue of
/// Dispatch cannot replace them: on Linux, a concurrent queue has as many threads as there are
/// processors, even while all of them wait for the disk.
///
/// Each thread holds this object, so it lives until its last job has run.
final class BlockingThreads: TaskExecutor {
  /// The maximum number of threads.
  static let limit = 64

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct State {
    var jobs = JobQueue()
    /// The number of threads, working and idle.
    var threads = 0
    /// The idle threads, by the semaphores that wake them.
    ///
    /// The last one is woken first, so that the others reach the end of their idle time.
    var idle: [DispatchSemaphore] = []
    /// Whether a thread without a job ends at once.
    var endsIdle = false
  }

  private let state = Mutex(State())
  private let owner = ProcessOwner()
  private let idleTime: DispatchTimeInterval
  private let start: @Sendable (@escaping @Sendable () -> Void) -> Bool

  /// - Parameters:
  ///   - idleTime: The time after which an idle thread ends.
  ///   - start: Starts a thread; returns false if the system refuses one.
  init(
    idleTime: DispatchTimeInterval = .seconds(10),
    startingBy start: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = startThread
  ) {
    (self.idleTime, self.start) = (idleTime, start)
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let (isShort, idle) = state.withLock { state -> (Bool, DispatchSemaphore?) in
      state.jobs.append(job)
      if let idle = state.idle.popLast() { return (false, idle) }
      guard state.threads < Self.limit else { return (false, nil) }
      state.threads += 1
      return (true, nil)
    }
    idle?.signal()
    guard isShort, !start({ self.serve() }) else { return }
    // Dispatch waits until the system has a thread, so the job is not lost. The thread belongs to
    // Swift's cooperative pool, so it must not be idle here.
    DispatchQueue.global().async { self.serve(mayIdle: false) }
  }

  /// Ends the idle threads, and from now on each thread that has no job.
  func endIdle() {
    // In a forked child, the lock may be held by a thread that does not exist there.
    guard owner.isCurrent else { return }
    let idle = state.withLock { state in
      defer { state.idle = [] }
      state.endsIdle = true
      return state.idle
    }
    for thread in idle { thread.signal() }
  }
}

// MARK: - In a thread

extension BlockingThreads {
  private enum Step {
    case run(UnownedJob)
    case wait
    case end
  }

  /// Runs jobs until the calling thread is to end.
  private func serve(mayIdle: Bool = true) {
    let wakeUp = DispatchSemaphore(value: 0)
    while true {
      switch nextStep(of: wakeUp, mayIdle: mayIdle) {
      case .run(let job): job.runSynchronously(on: asUnownedTaskExecutor())
      case .wait: guard isWoken(wakeUp) else { return }
      case .end: return
      }
    }
  }

  private func nextStep(of thread: DispatchSemaphore, mayIdle: Bool) -> Step {
    state.withLock { state in
      if let job = state.jobs.popFirst() { return .run(job) }
      guard mayIdle, !state.endsIdle else {
        state.threads -= 1
        return .end
      }
      state.idle.append(thread)
      return .wait
    }
  }

  /// Waits until the calling thread, which is idle, is woken; false if it is to end.
  private func isWoken(_ thread: DispatchSemaphore) -> Bool {
    guard thread.wait(timeout: .monotonicNow + idleTime) == .timedOut else { return true }
    let ends = state.withLock { state in
      guard let place = state.idle.firstIndex(where: { $0 === thread }) else { return false }
      state.idle.remove(at: place)
      state.threads -= 1
      return true
    }
    // If the thread is not in the list, it is being woken.
    if !ends { thread.wait() }
    return !ends
  }
}

/// Jobs in the order of their arrival.
struct JobQueue {
  private var arrived: [UnownedJob] = []
  /// The jobs that arrived before those of `arrived`, the first one last.
  private var next: [UnownedJob] = []

  mutating func append(_ job: UnownedJob) { arrived.append(job) }

  mutating func popFirst() -> UnownedJob? {
    if next.isEmpty {
      next = arrived.reversed()
      arrived.removeAll(keepingCapacity: true)
    }
    return next.popLast()
  }
}
