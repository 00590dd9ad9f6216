public import Foundation
import Synchronization

// The only file that knows where `URLSession` lives.
#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// An ``HTTPClient`` over `URLSession` that trusts no server.
///
/// ```swift
/// let client = URLSessionClient(maximumResponseBytes: 1 << 20)
/// let reply = try await client.get(url)
/// ```
///
/// It keeps nothing: no response cache hides beneath yours, no cookies, no credentials. A response
/// over the limit is cut off while it arrives, a slow one when its time is up, and redirects lead
/// only to `http` and `https`, at most `maximumRedirects` times. Cancelling the calling task stops
/// the request. Use it from any thread; requests under way keep the client and its session alive.
///
/// Two limits are the system's, on Linux. The body of a *redirect* is not counted while it arrives:
/// a server that sends one without end is given up after `resourceTimeout`, and the client should
/// then be replaced by a new one. And a *declared length* of 2^63 - 512 bytes or more, up to
/// 2^63 - 1, ends the process: Foundation converts it without looking, before any of its clients
/// are asked. Where servers are not trusted with that, put a proxy before them.
public final class URLSessionClient: HTTPClient {
  private let session: URLSession
  private let exchanges = Exchanges()
  private let limits: Limits

  /// Makes a client with a session of its own.
  ///
  /// Negative limits, and time limits that are not positive, are a programmer's error.
  ///
  /// - Parameters:
  ///   - maximumResponseBytes: The largest body taken, in bytes after decompression. 16 MB by
  ///     default.
  ///   - maximumRedirects: How many redirects one request may follow. 5 by default; 0 follows none.
  ///   - requestTimeout: How long nothing may arrive, rounded up to whole seconds. 30 seconds by
  ///     default.
  ///   - resourceTimeout: How long the whole exchange may take, even when bytes keep dripping in.
  ///     120 seconds by default. Both time limits are a year at most: a longer one is a year.
  ///   - configuration: Where headers, proxies and the like come from; it is copied. Its timeouts,
  ///     caches, cookies and credentials are not used. Ephemeral by default.
  public init(
    maximumResponseBytes: Int = 16 << 20, maximumRedirects: Int = 5,
    requestTimeout: Duration = .seconds(30), resourceTimeout: Duration = .seconds(120),
    configuration: URLSessionConfiguration = .ephemeral
  ) {
    precondition(maximumResponseBytes >= 0, "maximumResponseBytes must not be negative")
    precondition(maximumRedirects >= 0, "maximumRedirects must not be negative")
    precondition(requestTimeout > .zero && resourceTimeout > .zero, "timeouts must be positive")
    // Foundation counts milliseconds, and sleeps nanoseconds, in 64 bits.
    let requestTimeout = min(requestTimeout, .seconds(31_536_000))
    let resourceTimeout = min(resourceTimeout, .seconds(31_536_000))
    limits = Limits(
      responseBytes: maximumResponseBytes, redirects: maximumRedirects, duration: resourceTimeout)
    let settings = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
    settings.timeoutIntervalForRequest = wholeSeconds(requestTimeout)
    settings.timeoutIntervalForResource = wholeSeconds(resourceTimeout)
    settings.requestCachePolicy = .reloadIgnoringLocalCacheData
    settings.urlCache = nil
    settings.urlCredentialStorage = nil
    settings.httpCookieStorage = nil
    settings.httpShouldSetCookies = false
    settings.httpCookieAcceptPolicy = .never
    session = URLSession(configuration: settings, delegate: exchanges, delegateQueue: nil)
  }

  deinit {
    // A session holds its delegate, and itself, until it is invalidated.
    exchanges.commands.async { [session] in session.invalidateAndCancel() }
  }

  /// Sends one GET request and returns what came back, whatever its status code.
  ///
  /// - Parameter url: The URL to request, exactly as it is: `http` or `https`.
  /// - Returns: The reply of the last server in a chain of redirects.
  /// - Throws: `URLError` when the network fails, `URLError(.timedOut)` when a time limit is over,
  ///   `URLError(.cancelled)` when the calling task is cancelled; ``HTTPClientError`` when the
  ///   response breaks a limit.
  /// - Complexity: One request, and one per redirect followed.
  public func get(_ url: URL) async throws -> HTTPReply {
    let exchange = Exchange(limits)
    // Linux knows no timeout for a whole resource, so it is measured here, on every platform.
    let timer = Task {
      try await Task.sleep(for: limits.duration)
      exchanges.stop(exchange, with: URLError(.timedOut))
    }
    defer { timer.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        exchange.begin(continuation)
        exchanges.start(exchange, url, in: session)
      }
    } onCancel: {
      exchanges.stop(exchange, with: URLError(.cancelled))
    }
  }
}

private struct Limits {
  var responseBytes: Int
  var redirects: Int
  var duration: Duration
}

/// One request, from its start to its result.
///
/// Its result is the first one it is given.
private final class Exchange: Sendable {
  private struct State {
    var continuation: CheckedContinuation<HTTPReply, any Error>?
    var result: Result<HTTPReply, any Error>?
    var task: URLSessionTask?
    var body = Data()
    var redirects = 0
  }

  private let limits: Limits
  private let state = Mutex(State())

  init(_ limits: Limits) { self.limits = limits }

  func begin(_ continuation: CheckedContinuation<HTTPReply, any Error>) {
    let early = state.withLock { state in
      if state.result == nil { state.continuation = continuation }
      return state.result
    }
    if let early { continuation.resume(with: early) }
  }

  func end(with result: Result<HTTPReply, any Error>) {
    let continuation = state.withLock { state in
      guard state.result == nil else { return nil as CheckedContinuation<HTTPReply, any Error>? }
      state.result = result
      state.body = Data()
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(with: result)
  }

  var hasEnded: Bool { state.withLock { $0.result != nil } }

  /// Takes the task unless the exchange has already ended.
  func take(_ task: URLSessionTask) -> Bool {
    state.withLock { state in
      guard state.result == nil else { return false }
      state.task = task
      return true
    }
  }

  func cancelTask() { state.withLock { $0.task }?.cancel() }

  /// Why a body of this declared length is not taken, or nil.
  func refusal(ofDeclared count: Int64) -> HTTPClientError? {
    count > Int64(limits.responseBytes) ? .responseTooLarge(limit: limits.responseBytes) : nil
  }

  /// Keeps a piece of the body, or says why it is not taken.
  func append(_ data: Data) -> HTTPClientError? {
    state.withLock { state in
      guard state.result == nil else { return nil }
      guard state.body.count + data.count <= limits.responseBytes else {
        return .responseTooLarge(limit: limits.responseBytes)
      }
      state.body.append(data)
      return nil
    }
  }

  /// Answers a redirect, unless the exchange has ended.
  ///
  /// It ends the exchange when it refuses.
  ///
  /// Under the lock, for on Linux the answer must not come after a cancellation: that ends the
  /// process. A cancellation ends the exchange first, and is sent after that.
  func redirect(
    _ response: HTTPURLResponse, to request: URLRequest, answer: (URLRequest?) -> Void
  ) {
    let refused = state.withLock { state in
      guard state.result == nil else { return false }
      state.redirects += 1
      let follows =
        state.redirects <= limits.redirects
        && allowsRedirect(
          from: response.url, to: request.url,
          location: response.value(forHTTPHeaderField: "Location"))
      answer(follows ? request : nil)
      return !follows
    }
    if refused { end(with: .failure(HTTPClientError.redirectRefused(to: request.url))) }
  }

  func complete(_ response: URLResponse?, _ error: (any Error)?) {
    if let error { return end(with: .failure(error)) }
    guard let response = response as? HTTPURLResponse else {
      return end(with: .failure(HTTPClientError.unexpectedResponse))
    }
    let body = state.withLock { $0.body }
    end(with: .success(HTTPReply(status: response.statusCode, body: body)))
  }
}

/// Hands what a session tells about its tasks to their exchanges.
///
/// Tasks are made, started and cancelled on a queue of our own, in that order. Each of these waits
/// for the session's queue, which on Linux a fast server keeps busy for as long as it sends:
/// neither a caller nor the delegate's queue, where the pieces of a body wait, may be held up with
/// it.
private final class Exchanges: NSObject, URLSessionDataDelegate, Sendable {
  let commands = DispatchQueue(label: "larder.feeds.http")
  private let running = Mutex<[Int: Exchange]>([:])

  func start(_ exchange: Exchange, _ url: URL, in session: URLSession) {
    commands.async {
      guard !exchange.hasEnded else { return }
      let task = session.dataTask(with: URLRequest(url: url))
      guard exchange.take(task) else { return task.cancel() }
      self.running.withLock { $0[task.taskIdentifier] = exchange }
      task.resume()
    }
  }

  func stop(_ exchange: Exchange, with error: any Error) {
    guard !exchange.hasEnded else { return }
    exchange.end(with: .failure(error))
    commands.async { exchange.cancelTask() }
  }

  private func exchange(of task: URLSessionTask) -> Exchange? {
    running.withLock { $0[task.taskIdentifier] }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    if let exchange = exchange(of: dataTask),
      let refusal = exchange.refusal(ofDeclared: response.expectedContentLength)
    {
      stop(exchange, with: refusal)
    }
    // Linux ignores the answer.
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if let exchange = exchange(of: dataTask), let refusal = exchange.append(data) {
      stop(exchange, with: refusal)
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    exchange(of: task)?.redirect(response, to: request, answer: completionHandler)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    #if canImport(FoundationNetworking)
      // Here a challenge comes after the body of the 401, and no answer to it ends the task well.
      exchange(of: task)?.complete(challenge.failureResponse, nil)
      commands.async { task.cancel() }
    #else
      let isServer = challenge.protectionSpace.serverTrust != nil
      completionHandler(isServer ? .performDefaultHandling : .rejectProtectionSpace, nil)
    #endif
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    let exchange = running.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    exchange?.complete(task.response, error)
  }
}

/// A timeout that Linux takes as it is: it cuts off the fraction, and then 0 is over at once.
package func wholeSeconds(_ timeout: Duration) -> TimeInterval {
  (timeout / .seconds(1)).rounded(.up)
}

/// Whether a redirect stays on the web and does not lose encryption on the way.
///
/// `location` is what the server wrote: Linux reads a `file:` URL there as a path on the server.
package func allowsRedirect(from source: URL?, to target: URL?, location: String?) -> Bool {
  let written = location.flatMap(URL.init(string:))?.scheme ?? target?.scheme
  let schemes = [target?.scheme, written].map { $0?.lowercased() }
  if source?.scheme?.lowercased() == "https" { return schemes.allSatisfy { $0 == "https" } }
  return schemes.allSatisfy { $0 == "http" || $0 == "https" }
}
