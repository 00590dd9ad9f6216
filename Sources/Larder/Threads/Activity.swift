/// The work that a store does besides its callers' own calls: loads, and writes queued by reads.
///
/// Tests wait for its end. A piece of work begins before the call that starts it returns.
package final class Activity: Sendable {
  package typealias Waiter = CheckedContinuation<Void, any Error>

  private struct State {
    /// The number of pieces of work that have begun and not ended.
    var count = 0
    var isClosed = false
    var waiters: [Int: Waiter] = [:]
    var lastWaiter = 0

    mutating func takeWaiters() -> [Waiter] {
      defer { waiters = [:] }
      return Array(waiters.values)
    }
  }

  private let state = Lock(State())
  private let owner = ProcessOwner()

  /// The number of waits that have not ended.
  var waiting: Int { state.withLock { $0.waiters.count } }

  /// Begins a piece of work; it ends with ``end()``.
  func begin() { state.withLock { $0.count += 1 } }

  /// Ends a piece of work.
  ///
  /// - Returns: The waits that have ended. The caller resumes them once it holds no lock.
  func end() -> [Waiter] {
    state.withLock { state in
      state.count -= 1
      return state.count == 0 ? state.takeWaiters() : []
    }
  }

  /// Ends all waits, because the store is closed.
  func close() {
    // In a forked child, the lock may be held by a thread that does not exist there.
    guard owner.isCurrent else { return }
    let waiters = state.withLock { state in
      state.isClosed = true
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume(throwing: StoreError.closed) }
  }

  /// Waits for a moment at which no work is under way.
  ///
  /// Throws ``StoreError/closed`` if the store is closed, or `CancellationError`.
  package func waitUntilIdle() async throws {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        let outcome = state.withLock { state -> Result<Void, any Error>? in
          if state.isClosed { return .failure(StoreError.closed) }
          // A task that is cancelled later finds the waiter.
          if Task.isCancelled { return .failure(CancellationError()) }
          if state.count == 0 { return .success(()) }
          state.waiters[id] = waiter
          return nil
        }
        if let outcome { waiter.resume(with: outcome) }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
      waiter?.resume(throwing: CancellationError())
    }
  }
}
