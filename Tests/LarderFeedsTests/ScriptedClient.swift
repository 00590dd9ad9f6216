import Foundation
import LarderFeeds
import LarderTestSupport

/// A client that returns scripted responses, one per request, and records the requests.
///
/// When the script has ended, it goes on with its last word: by default, that there is no
/// connection.
final class ScriptedClient: HTTPClient {
  enum Step: Sendable {
    case reply(Int, String)
    case bytes([UInt8])
    case fail(any Error)
    /// The request stays pending, cancelled or not, until ``release(_:_:)``.
    ///
    /// It fails after three minutes, so that a test that never releases it ends.
    case hold
  }

  private struct State {
    var script: [Step]
    var last: Step
    var urls: [URL] = []
    var held: [Int: CheckedContinuation<HTTPReply, any Error>] = [:]
    var cancelled: Set<Int> = []
  }

  private let state: Watched<State>

  init(_ script: Step..., last: Step = .fail(URLError(.notConnectedToInternet))) {
    state = Watched(State(script: script, last: last))
  }

  /// The requests so far, in order.
  var urls: [URL] { state.read { $0.urls } }

  /// The requests whose task was cancelled while they were held, by their place in ``urls``.
  var cancelled: Set<Int> { state.read { $0.cancelled } }

  /// Waits until `count` requests are held.
  ///
  /// Throws `CancellationError` when the test is cancelled first, by its time limit for example.
  func holds(_ count: Int) async throws { try await wait { $0.held.count == count } }

  /// Waits until a held request's task is cancelled.
  ///
  /// Throws `CancellationError` when the test is cancelled first, by its time limit for example.
  func isCancelled(_ index: Int) async throws { try await wait { $0.cancelled.contains(index) } }

  /// Ends a held request.
  func release(_ index: Int, _ result: Result<HTTPReply, any Error>) {
    state.change { $0.held.removeValue(forKey: index) }?.resume(with: result)
  }

  /// Throws where the wait was cut short: a test that continued would start loads that nobody
  /// cancels, and wait for them.
  private func wait(until isMet: @escaping @Sendable (State) -> Bool) async throws {
    await state.wait(until: isMet)
    try Task.checkCancellation()
  }

  func get(_ url: URL) async throws -> HTTPReply {
    let (index, step) = state.change { state in
      state.urls.append(url)
      let step = state.script.isEmpty ? nil : state.script.removeFirst()
      return (state.urls.count - 1, step ?? state.last)
    }
    switch step {
    case .bytes(let bytes): return HTTPReply(status: 200, body: Data(bytes))
    case .reply(let status, let body): return HTTPReply(status: status, body: Data(body.utf8))
    case .fail(let error): throw error
    case .hold:
      return try await withTaskCancellationHandler {
        let limit = TimeLimit(seconds: 180) { self.release(index, .failure(URLError(.timedOut))) }
        defer { limit.lift() }
        return try await withCheckedThrowingContinuation { held in
          state.change { $0.held[index] = held }
        }
      } onCancel: {
        state.change { _ = $0.cancelled.insert(index) }
      }
    }
  }
}
