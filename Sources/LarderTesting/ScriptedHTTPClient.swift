public import Foundation
public import HTTPTypes
import Larder
public import LarderFeeds
import Synchronization

/// A client for tests, which answers requests from a script and records them.
///
/// ```swift
/// let client = ScriptedHTTPClient([.reply(200, #"{"stations":[]}"#), .fail(URLError(.timedOut))])
/// let stations = try StationsLoader.stations(from: url, client: client, store: .inMemory())
///
/// _ = try await stations.load("fr")
/// #expect(client.requests.map(\.path) == ["/stations/fr"])
/// #expect(client.unexpectedRequests.isEmpty)
/// ```
///
/// A client with an empty script expects no request. It can be used from any thread, by any number
/// of loaders.
public final class ScriptedHTTPClient: HTTPClient {
  /// The answer to one request.
  public struct Answer: Sendable {
    enum Kind: Sendable {
      case reply(HTTPResponse, Data)
      case failure(any Error)
      case held
      case unexpected
    }

    let kind: Kind

    /// A response.
    ///
    /// - Parameters:
    ///   - status: The status, 0 to 999.
    ///   - body: The body, as UTF-8; empty by default.
    ///   - headerFields: The header fields; none by default.
    /// - Returns: The answer.
    public static func reply(
      _ status: Int, _ body: String = "", headerFields: HTTPFields = [:]
    ) -> Answer {
      reply(status, Data(body.utf8), headerFields: headerFields)
    }

    /// A response with a body of any bytes.
    public static func reply(
      _ status: Int, _ body: Data, headerFields: HTTPFields = [:]
    ) -> Answer {
      let status = HTTPResponse.Status(code: status)
      return Answer(kind: .reply(HTTPResponse(status: status, headerFields: headerFields), body))
    }

    /// No response; the client throws this error.
    public static func fail(_ error: any Error) -> Answer { Answer(kind: .failure(error)) }

    /// No answer until ``ScriptedHTTPClient/release(_:with:)``, cancelled or not.
    ///
    /// After three minutes the client throws `URLError(.timedOut)`, so that a test that never
    /// releases the request ends.
    public static var hold: Answer { Answer(kind: .held) }

    /// The request is not expected: it is listed in ``ScriptedHTTPClient/unexpectedRequests``, and
    /// the client throws `URLError(.notConnectedToInternet)`.
    public static var unexpected: Answer { Answer(kind: .unexpected) }
  }

  private typealias Reply = (HTTPResponse, Data)

  private struct Waiter {
    let isMet: @Sendable (borrowing State) -> Bool
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var script: [Answer]
    let last: Answer
    var requests: [HTTPRequest] = []
    var bodies: [Data] = []
    var unexpected: [HTTPRequest] = []
    var held: [Int: CheckedContinuation<Reply, any Error>] = [:]
    var cancelled: Set<Int> = []
    var lastWaiter = 0
    var waiters: [Int: Waiter] = [:]

    /// The waits that have ended, to be resumed without the lock.
    mutating func takeMet() -> [CheckedContinuation<Bool, Never>] {
      let met = waiters.filter { $0.value.isMet(self) }
      for id in met.keys { waiters[id] = nil }
      return met.values.map(\.continuation)
    }
  }

  private let state: Mutex<State>

  /// Makes a client.
  ///
  /// - Parameters:
  ///   - answers: The answers to the first requests, one for each.
  ///   - last: The answer to each further request; by default, none is expected.
  public init(_ answers: [Answer], then last: Answer = .unexpected) {
    state = Mutex(State(script: answers, last: last))
  }

  /// The requests so far, in their order.
  public var requests: [HTTPRequest] { state.withLock { $0.requests } }

  /// The bodies of the requests so far, in their order.
  public var bodies: [Data] { state.withLock { $0.bodies } }

  /// The requests that were not expected, in their order.
  public var unexpectedRequests: [HTTPRequest] { state.withLock { $0.unexpected } }

  /// The requests whose task was cancelled while they were held, by their place in ``requests``.
  public var cancelledRequests: Set<Int> { state.withLock { $0.cancelled } }

  /// Answers a request that is held.
  ///
  /// - Parameters:
  ///   - index: The place of the request in ``requests``. Nothing happens if it is not held.
  ///   - answer: The answer; neither ``Answer/hold`` nor ``Answer/unexpected``.
  public func release(_ index: Int, with answer: Answer) {
    let held = change { $0.held.removeValue(forKey: index) }
    switch answer.kind {
    case .reply(let response, let body): held?.resume(returning: (response, body))
    case .failure(let error): held?.resume(throwing: error)
    case .held, .unexpected: preconditionFailure("a released request has a reply or a failure")
    }
  }

  /// Sends nothing, and returns the next answer of the script.
  public func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
    let (index, answer) = change { state in
      state.requests.append(request)
      state.bodies.append(body)
      let answer = state.script.isEmpty ? state.last : state.script.removeFirst()
      if case .unexpected = answer.kind { state.unexpected.append(request) }
      return (state.requests.count - 1, answer)
    }
    switch answer.kind {
    case .reply(let response, let body): return (response, body)
    case .failure(let error): throw error
    case .unexpected: throw URLError(.notConnectedToInternet)
    case .held:
      return try await withTaskCancellationHandler {
        let lift = systemLoadTimer(.seconds(180)) {
          self.release(index, with: .fail(URLError(.timedOut)))
        }
        defer { lift() }
        return try await withCheckedThrowingContinuation { held in
          change { $0.held[index] = held }
        }
      } onCancel: {
        change { _ = $0.cancelled.insert(index) }
      }
    }
  }
}

// MARK: - Waiting

extension ScriptedHTTPClient {
  /// Waits until there have been so many requests.
  ///
  /// - Throws: `CancellationError` if the task is cancelled first, by a test's time limit for
  ///   example.
  public func waitForRequests(_ count: Int) async throws {
    try await wait { $0.requests.count >= count }
  }

  /// Waits until exactly so many requests are held.
  ///
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func waitForHeldRequests(_ count: Int) async throws {
    try await wait { $0.held.count == count }
  }

  /// Waits until the task of a held request is cancelled.
  ///
  /// - Parameter index: The place of the request in ``requests``.
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func waitForCancellation(of index: Int) async throws {
    try await wait { $0.cancelled.contains(index) }
  }

  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, met) = state.withLock { state in
      let result = body(&state)
      return (result, state.takeMet())
    }
    for continuation in met { continuation.resume(returning: true) }
    return result
  }

  private func wait(until isMet: @escaping @Sendable (borrowing State) -> Bool) async throws {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    let isOver = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isCancelled = Task.isCancelled
        change { $0.waiters[id] = Waiter(isMet: isMet, continuation: continuation) }
        if isCancelled { stopWaiting(id) }
      }
    } onCancel: {
      stopWaiting(id)
    }
    if !isOver { throw CancellationError() }
  }

  private func stopWaiting(_ id: Int) {
    state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume(returning: false)
  }
}
