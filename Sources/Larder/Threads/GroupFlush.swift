import Dispatch
import Synchronization

/// Lets tasks wait for an fsync by a continuation, not on a thread each, and share it.
///
/// A task that was alone last time flushes on its own thread. Otherwise, if no flush is under way,
/// it starts one on another of the store's threads, which flushes for all that wait, and goes on
/// while others come.
final class GroupFlush: Sendable {
  typealias Resume = @Sendable (Result<Void, StoreError>) -> Void

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct State {
    var waiting: [Resume] = []
    var isLed = false
    var gathering = Gathering()
  }

  private let state = Mutex(State())
  private let threads: BlockingThreads
  // Who waits keeps the store open. The leader may outlive it for a moment, in which the engine
  // must not hold the directory.
  private unowned let engine: any StorageEngine

  init(of engine: any StorageEngine, on threads: BlockingThreads) {
    (self.engine, self.threads) = (engine, threads)
  }

  /// The number of tasks that wait for the next flush.
  var waitingTasks: Int { state.withLock { $0.waiting.count } }

  /// Calls `resume` once everything that was committed before is safe from power loss.
  ///
  /// The outcome is that of ``StorageEngine/flush()``. The calling thread is one of the store's,
  /// and the store must not be freed before `resume` is called.
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
      guard state.withLock({ $0.isLedFurther() }) else { return }
    }
    Task.detached(executorPreference: threads) {
      repeat { self.gather() } while self.flushGroup()
    }
  }

  private func gather() {
    while let wait = state.withLock({ $0.gathering.wait(with: $0.waiting.count) }) { wait.end() }
  }

  /// Flushes for all that wait; returns false if there are none, which ends leading.
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
  /// Ends leading if nobody waits; returns whether somebody does.
  fileprivate mutating func isLedFurther() -> Bool {
    isLed = !waiting.isEmpty
    return isLed
  }

  fileprivate mutating func takeGroup() -> [GroupFlush.Resume]? {
    guard isLedFurther() else { return nil }
    defer { waiting = [] }
    return waiting
  }
}
