public import Larder
import Synchronization

/// A running load that calls a completion, and can be cancelled.
///
/// The completion runs once, on any thread, or never if ``cancel()`` comes first. A load continues
/// even if its task is released.
public final class LoadTask<Value: Sendable>: Sendable {
  private struct State {
    var deliver: (@Sendable (Result<Value, FeedError>) -> Void)?
    var task: Task<Void, Never>?
  }

  private let state: Mutex<State>

  /// Starts `work`, which throws only `FeedError` and `CancellationError`.
  init(
    _ work: @escaping @Sendable () async throws -> Value,
    completion: @escaping @Sendable (Result<Value, FeedError>) -> Void
  ) {
    state = Mutex(State(deliver: completion))
    let task = Task {
      do {
        finish(.success(try await work()))
      } catch let error as FeedError {
        finish(.failure(error))
      } catch {
        cancel()
      }
    }
    state.withLock { $0.task = $0.deliver == nil ? nil : task }
  }

  /// Cancels the load: stops the request and delivers nothing.
  ///
  /// Cancelling a finished or cancelled load does nothing. A completion that is already running
  /// continues.
  public func cancel() {
    let task = state.withLock { state in
      defer { state = State() }
      return state.task
    }
    task?.cancel()
  }

  private func finish(_ result: Result<Value, FeedError>) {
    let deliver = state.withLock { state in
      defer { state = State() }
      return state.deliver
    }
    deliver?(result)
  }
}

extension Loader {
  /// Loads the value for an input and passes it to a completion.
  ///
  /// See ``load(_:maxAge:)``.
  ///
  /// - Parameters:
  ///   - input: The input for the endpoint's URL.
  ///   - maxAge: As in ``load(_:maxAge:)``.
  ///   - completion: Called once, on any thread, unless the task is cancelled first.
  /// - Returns: The task of the load, to cancel it.
  @discardableResult public func load(
    _ input: Input, maxAge: MaxAge? = nil,
    completion: @escaping @Sendable (Result<Loaded<Value>, FeedError>) -> Void
  ) -> LoadTask<Loaded<Value>> {
    LoadTask({ try await load(input, maxAge: maxAge) }, completion: completion)
  }
}

extension Loader where Input == Void {
  /// Loads the value of a feed without an input and passes it to a completion.
  @discardableResult public func load(
    maxAge: MaxAge? = nil,
    completion: @escaping @Sendable (Result<Loaded<Value>, FeedError>) -> Void
  ) -> LoadTask<Loaded<Value>> {
    load((), maxAge: maxAge, completion: completion)
  }
}
