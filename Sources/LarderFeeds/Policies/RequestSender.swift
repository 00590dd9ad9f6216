import Foundation
import HTTPTypes
import Larder

/// A response with status 304: the entry that the request had the validator of is up to date.
struct NotModified: Error {
  let exchange: Exchanged
}

/// Sends the requests of one load, with its retries.
struct RequestSender: Sendable {
  let client: any HTTPClient
  let policy: LoadPolicy
  var timer = systemLoadTimer
  var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
  /// The header fields that make a request conditional.
  var condition = HTTPFields()

  /// Makes a request; an error counts as one that could not be sent.
  func make(_ request: () throws -> HTTPRequest) throws(RemoteFailure) -> HTTPRequest {
    do {
      return try request()
    } catch {
      throw RemoteFailure(.connectivity, underlying: error)
    }
  }

  /// Sends a request, again after failures that the policy retries, and maps the response.
  ///
  /// Throws only ``RemoteFailure``, `CancellationError`, and ``NotModified`` for a conditional
  /// request.
  func send<Result: Sendable>(
    _ request: HTTPRequest, body: Data, isConditional: Bool = false,
    _ map: (HTTPResponse, Data) throws -> Result
  ) async throws -> Result {
    var request = request
    let isConditional = isConditional && request.method == .get && !condition.isEmpty
    if isConditional { for field in condition { request.headerFields[field.name] = field.value } }
    var attempts = 1
    while true {
      do {
        return try await attempt(request, body, isConditional, map)
      } catch let failure as RemoteFailure {
        let retries = policy.loading.retries
        let wait = failure.retryAfter ?? .zero
        guard attempts <= retries.extra, wait <= retries.upTo,
          policy.retriesAfter.contains(failure.kind)
        else { throw failure }
        try await pause(max(wait, retries.delay(before: attempts, chance: random())))
        attempts += 1
      }
    }
  }

  private func attempt<Result: Sendable>(
    _ request: HTTPRequest, _ body: Data, _ isConditional: Bool,
    _ map: (HTTPResponse, Data) throws -> Result
  ) async throws -> Result {
    try Task.checkCancellation()
    let (response, data): (HTTPResponse, Data)
    do {
      (response, data) = try await client.send(request, body: body)
    } catch {
      // A cancelled client may throw any error.
      try Task.checkCancellation()
      throw RemoteFailure(.connectivity, underlying: error)
    }
    // A cancelled client may also return a response.
    try Task.checkCancellation()
    if isConditional, response.status == .notModified {
      throw NotModified(exchange: Exchanged(request: request, response: response))
    }
    do {
      return try map(response, data)
    } catch {
      // An endpoint throws it for a status that it does not accept.
      let underlying = error is RemoteFailure ? nil : error
      throw RemoteFailure(.invalidData, response: response, body: data, underlying: underlying)
    }
  }

  /// Waits, unless the task is cancelled.
  private func pause(_ delay: Duration) async throws {
    guard delay > .zero else { return }
    let (isOver, end) = AsyncStream.makeStream(of: Void.self)
    let cancel = timer(delay) { end.finish() }
    defer { cancel() }
    // A cancellation of the task ends it, too.
    for await _ in isOver {}
    try Task.checkCancellation()
  }
}
