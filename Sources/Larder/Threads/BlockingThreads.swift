import Dispatch

/// Threads on which tasks may block, apart from Swift's cooperative pool.
///
/// A job that arrives wakes an idle thread, or starts one, up to ``limit`` threads. One thread at a
/// time is on its way: it calls the next one when it takes a job and others wait. So short jobs are
/// run by a few threads, and each job that blocks has a thread. Jobs start in the order of their
/// arrival. A thread ends after it was idle for `idleTime`. A queue of Dispatch cannot replace
/// them: on Linux, a concurrent queue has as many threads as there are processors, even while all
/// of them wait for the disk.
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
    /// Whether a thread was woken or started, and has not looked for a job yet.
    var isOneOnItsWay = false
    /// Whether a thread without a job ends at once.
    var endsIdle = false
  }

  private let state = Lock(State())
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
    let helper = state.withLock { state in
      state.jobs.append(job)
      return Self.helper(in: &state)
    }
    call(helper)
  }

  private enum Helper {
    case idle(DispatchSemaphore)
    case new
  }

  /// The thread to call for the jobs that wait; nil if one is on its way, or there are enough.
  private static func helper(in state: inout State) -> Helper? {
    guard !state.jobs.isEmpty, !state.isOneOnItsWay else { return nil }
    if let idle = state.idle.popLast() {
      state.isOneOnItsWay = true
      return .idle(idle)
    }
    guard state.threads < limit else { return nil }
    state.threads += 1
    state.isOneOnItsWay = true
    return .new
  }

  private func call(_ helper: Helper?) {
    switch helper {
    case nil: break
    case .idle(let thread): thread.signal()
    case .new:
      if start({ self.serve() }) { return }
      // No thread was started, so the next job may wake one.
      state.withLock { $0.isOneOnItsWay = false }
      // Dispatch waits until the system has a thread, so the job is not lost. The thread belongs to
      // Swift's cooperative pool, so it must not be idle here.
      DispatchQueue.global().async { self.serve(mayIdle: false) }
    }
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
    var isNew = true
    while true {
      let (step, helper) = nextStep(of: wakeUp, isNew: isNew, mayIdle: mayIdle)
      call(helper)
      isNew = false
      switch step {
      case .run(let job): job.runSynchronously(on: asUnownedTaskExecutor())
      case .wait:
        guard isWoken(wakeUp) else { return }
        isNew = true
      case .end: return
      }
    }
  }

  /// What the calling thread is to do, and the thread that it is to call for the jobs that wait.
  ///
  /// - Parameters:
  ///   - thread: Wakes the calling thread.
  ///   - isNew: Whether it was woken or started since its last step.
  ///   - mayIdle: Whether it may wait for a job.
  /// - Returns: Both.
  private func nextStep(
    of thread: DispatchSemaphore, isNew: Bool, mayIdle: Bool
  ) -> (Step, Helper?) {
    state.withLock { state in
      if isNew { state.isOneOnItsWay = false }
      if let job = state.jobs.popFirst() { return (.run(job), Self.helper(in: &state)) }
      guard mayIdle, !state.endsIdle else {
        state.threads -= 1
        return (.end, nil)
      }
      state.idle.append(thread)
      return (.wait, nil)
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

  var isEmpty: Bool { arrived.isEmpty && next.isEmpty }

  mutating func append(_ job: UnownedJob) { arrived.append(job) }

  mutating func popFirst() -> UnownedJob? {
    if next.isEmpty {
      next = arrived.reversed()
      arrived.removeAll(keepingCapacity: true)
    }
    return next.popLast()
  }
}
