import Dispatch

/// Lets tasks wait for an fsync by a continuation, not on a thread each, and share it.
///
/// One task at a time leads: it flushes for all that wait. After a group of one task, that is the
/// task that arrives, on the thread of its work. Otherwise it is a task of its own on the store's
/// threads, which flushes group after group, as long as tasks wait.
final class GroupFlush: Sendable {
  typealias Resume = @Sendable (Result<Void, StoreError>) -> Void

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct State {
    var waiting: [Resume] = []
    var isLed = false
    var gathering = Gathering()
  }

  private let state = Lock(State())
  private let threads: BlockingThreads
  // Those that wait keep the store. The leader may outlive it for a moment, and must not keep the
  // engine, which holds the directory.
  private unowned let engine: any StorageEngine

  init(of engine: any StorageEngine, on threads: BlockingThreads) {
    (self.engine, self.threads) = (engine, threads)
  }

  /// The number of tasks that wait for the next flush.
  var waitingTasks: Int { state.withLock { $0.waiting.count } }

  /// Calls `resume` once everything that was committed before is safe from power loss.
  ///
  /// It is passed the outcome of ``StorageEngine/flush()``. Call this on a thread of the store,
  /// because it may flush, and keep the store until `resume` is called.
  func wait(resumingBy resume: @escaping Resume) {
    let (leads, isAlone) = state.withLock { state in
      state.waiting.append(resume)
      state.gathering.noteArrival(state.waiting.count)
      defer { state.isLed = true }
      return (!state.isLed, state.gathering.isAlone)
    }
    guard leads else { return }
    if isAlone {
      flushGroup()
      guard state.withLock({ $0.goesOn() }) else { return }
    }
    Task.detached(executorPreference: threads) {
      repeat { self.gather() } while self.flushGroup()
    }
  }

  private func gather() {
    while let wait = state.withLock({ $0.gathering.wait(with: $0.waiting.count) }) { wait.end() }
  }

  /// Flushes for all tasks that wait, and returns true.
  ///
  /// If none waits, the leader's turn is over, and it returns false.
  @discardableResult private func flushGroup() -> Bool {
    guard let group = state.withLock({ $0.takeGroup() }) else { return false }
    let start = DispatchTime.monotonicNow
    let outcome = Result { () throws(StoreError) in try engine.flush() }
    state.withLock { $0.gathering.didWrite(since: start, group.count + $0.waiting.count) }
    for resume in group { resume(outcome) }
    return true
  }
}

extension GroupFlush.State {
  /// Returns whether a task waits.
  ///
  /// If none does, the leader's turn is over.
  fileprivate mutating func goesOn() -> Bool {
    isLed = !waiting.isEmpty
    return isLed
  }

  fileprivate mutating func takeGroup() -> [GroupFlush.Resume]? {
    guard goesOn() else { return nil }
    defer { waiting = [] }
    return waiting
  }
}
