import Synchronization

/// The wait of a load until its key is changed elsewhere.
final class KeyWait: Sendable {
  enum Outcome: Sendable {
    case changed
    case tooLong
  }

  private struct State {
    var outcome: Outcome?
    var continuation: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  /// Ends the wait, unless it has ended.
  func end(_ outcome: Outcome) {
    let continuation = state.withLock { state in
      if state.outcome == nil { state.outcome = outcome }
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(returning: outcome)
  }

  /// Waits for the outcome; it is too long once the calling task is cancelled.
  func outcome() async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state in
          if state.outcome == nil { state.continuation = continuation }
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      end(.tooLong)
    }
  }
}
