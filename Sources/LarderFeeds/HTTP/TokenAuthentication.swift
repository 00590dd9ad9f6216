public import Foundation
public import HTTPTypes
import Synchronization

/// Adds a token to requests, and replaces the token once when a server rejects it.
///
/// ```swift
/// let authentication = TokenAuthentication { expired in
///   try await signIn(insteadOf: expired)
/// }
/// let client = URLSessionClient().intercepted(by: authentication.intercept)
/// ```
///
/// A request with the status 401 is sent a second time with a new token. Requests that are
/// rejected at the same time share one new token. Use one authentication for all clients of a
/// server.
public final class TokenAuthentication<Token: Sendable>: Sendable {
  private struct State {
    var token: Token?
    /// The number of tokens so far.
    var count = 0
    var isRefreshing = false
    var lastWaiter = 0
    var waiters: [Int: CheckedContinuation<Token, any Error>] = [:]
  }

  /// What a request that needs a new token does next.
  private enum Next {
    case token(Token)
    case cancelled
    case refresh(Token?)
    case wait
  }

  private let state: Mutex<State>
  private let apply: @Sendable (Token, inout HTTPRequest) -> Void
  private let refresh: @Sendable (Token?) async throws -> Token

  /// Makes an authentication with tokens of any type.
  ///
  /// - Parameters:
  ///   - token: The first token; nil, the default, asks for one before the first request.
  ///   - apply: Adds a token to a request.
  ///   - refresh: Returns a new token in place of the rejected one, which is nil for the first. It
  ///     runs in a task of its own, one at a time, also if the loads that wait for it are
  ///     cancelled. If it throws, the requests that wait fail with its error, and the next one asks
  ///     again. It must not use a client with this authentication.
  public init(
    _ token: Token? = nil, apply: @escaping @Sendable (Token, inout HTTPRequest) -> Void,
    refresh: @escaping @Sendable (_ rejected: Token?) async throws -> Token
  ) {
    state = Mutex(State(token: token))
    self.apply = apply
    self.refresh = refresh
  }

  /// Sends a request with the token, see ``HTTPClient/intercepted(by:)``.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - body: The body; empty for none.
  ///   - client: The client that sends it.
  /// - Returns: The response; one with the status 401 if the new token is rejected, too.
  /// - Throws: The errors of the client and of the closure that returns new tokens;
  ///   `CancellationError`.
  /// - Complexity: One request, or two.
  @Sendable public func intercept(
    _ request: HTTPRequest, _ body: Data, _ client: any HTTPClient
  ) async throws -> (HTTPResponse, Data) {
    var (token, count) = state.withLock { ($0.token, $0.count) }
    if token == nil {
      token = try await newToken(after: count)
      count += 1
    }
    let (response, data) = try await send(request, body, client, token)
    guard response.status == .unauthorized else { return (response, data) }
    return try await send(request, body, client, newToken(after: count))
  }

  private func send(
    _ request: HTTPRequest, _ body: Data, _ client: any HTTPClient, _ token: Token?
  ) async throws -> (HTTPResponse, Data) {
    var request = request
    if let token { apply(token, &request) }
    return try await client.send(request, body: body)
  }

  /// The token that follows the first `count` tokens.
  private func newToken(after count: Int) async throws -> Token {
    let waiter = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        wait(waiter, continuation, after: count)
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: waiter) }?
        .resume(throwing: CancellationError())
    }
  }

  private func wait(
    _ waiter: Int, _ continuation: CheckedContinuation<Token, any Error>, after count: Int
  ) {
    let next = state.withLock { state in
      if state.count > count, let token = state.token { return Next.token(token) }
      if Task.isCancelled { return .cancelled }
      state.waiters[waiter] = continuation
      defer { state.isRefreshing = true }
      return state.isRefreshing ? .wait : .refresh(state.token)
    }
    switch next {
    case .token(let token): continuation.resume(returning: token)
    case .cancelled: continuation.resume(throwing: CancellationError())
    case .refresh(let rejected): Task { await self.replace(rejected) }
    case .wait: break
    }
  }

  private func replace(_ rejected: Token?) async {
    let result: Result<Token, any Error>
    do {
      result = .success(try await refresh(rejected))
    } catch {
      result = .failure(error)
    }
    let waiters = state.withLock { state in
      if case .success(let token) = result {
        state.token = token
        state.count += 1
      }
      state.isRefreshing = false
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume(with: result) }
  }
}

extension TokenAuthentication where Token == String {
  /// Makes an authentication with bearer tokens, in the header `Authorization` (RFC 6750).
  ///
  /// - Parameters:
  ///   - token: The first token; nil, the default, asks for one before the first request.
  ///   - refresh: As in ``init(_:apply:refresh:)``.
  public convenience init(
    _ token: String? = nil,
    refresh: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    self.init(
      token, apply: { $1.headerFields[.authorization] = "Bearer \($0)" }, refresh: refresh)
  }
}
