import Synchronization

/// State with which a test can wait for a condition, until the test is cancelled.
package final class Watched<State: Sendable>: Sendable {
  private struct Waiter {
    let isMet: @Sendable (State) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct Guarded {
    var state: State
    var waiters: [Int: Waiter] = [:]
    var lastWaiter = 0
  }

  private let guarded: Mutex<Guarded>

  package init(_ state: sending State) { guarded = Mutex(Guarded(state: state)) }

  package func read<R: Sendable>(_ body: (State) -> R) -> R { guarded.withLock { body($0.state) } }

  /// Changes the state, and resumes the waiters whose condition is then met.
  @discardableResult package func change<R: Sendable>(_ body: (inout State) -> R) -> R {
    let (result, met) = guarded.withLock { guarded in
      let result = body(&guarded.state)
      let met = guarded.waiters.filter { $0.value.isMet(guarded.state) }
      for id in met.keys { guarded.waiters[id] = nil }
      return (result, met.values.map(\.continuation))
    }
    for waiter in met { waiter.resume() }
    return result
  }

  /// Waits until the state meets a condition.
  ///
  /// Returns early if the calling task is cancelled, for example by a time limit.
  package func wait(until isMet: @escaping @Sendable (State) -> Bool) async {
    let id = guarded.withLock { guarded in
      guarded.lastWaiter += 1
      return guarded.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = guarded.withLock { guarded in
          if isMet(guarded.state) || Task.isCancelled { return true }
          guarded.waiters[id] = Waiter(isMet: isMet, continuation: continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      guarded.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
    }
  }
}

extension Task where Failure == any Error {
  /// The value; the task is cancelled with the test that waits for it, as by a time limit.
  package var valueUnlessCancelled: Success {
    get async throws {
      try await withTaskCancellationHandler {
        try await value
      } onCancel: {
        cancel()
      }
    }
  }
}
