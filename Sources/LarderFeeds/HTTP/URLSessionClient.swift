public import Foundation
public import HTTPTypes
import HTTPTypesFoundation
import Larder
import Synchronization

// The only file that imports `URLSession`.
#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// An ``HTTPClient`` over `URLSession` with limits for untrusted servers.
///
/// ```swift
/// let client = URLSessionClient(maximumResponseBytes: 1 << 20)
/// let (response, body) = try await client.send(HTTPRequest(url: url), body: Data())
/// ```
///
/// A client stores no responses, cookies or credentials. It stops a response that exceeds
/// `maximumResponseBytes` while it arrives, and a slow one at its time limit. It follows redirects
/// to `http` and `https` only, at most `maximumRedirects` times; a redirect to another server
/// carries none of the request's own header fields but `Accept`, `Accept-Encoding`,
/// `Accept-Language`, `Content-Type` and `User-Agent`. Cancelling the calling task stops the
/// request. A client can be used from any thread; pending requests keep it and its session alive.
///
/// Foundation on Linux leaves five gaps; put a proxy before servers that are not trusted with them:
///
/// - A connection that is closed in the middle of the header fields ends the process, in Swift 6.3
///   (swift-corelibs-foundation issue 5285).
/// - A declared length from 2^63 - 512 to 2^63 - 1 bytes ends the process: Foundation converts the
///   number unchecked before it calls the client.
/// - The body of a redirect is not reported. An endless one ends after `resourceTimeout`, and the
///   client should then be replaced by a new one.
/// - Very small header fields take up to half a minute of one processor for a response. The request
///   ends at its time limit, and others wait.
/// - A byte above 127 in a header field that is not UTF-8, such as a Latin-1 letter in a file name,
///   fails the request as if there was no connection.
public final class URLSessionClient: HTTPClient {
  private let session: URLSession
  private let exchanges = Exchanges()
  private let limits: Limits

  /// Makes a client with a session of its own.
  ///
  /// Negative limits, and time limits that are not positive, are a programmer error. Time limits
  /// above one year are reduced to one year.
  ///
  /// - Parameters:
  ///   - maximumResponseBytes: The largest accepted body, in bytes after decompression. 16 MB by
  ///     default.
  ///   - maximumRedirects: The number of redirects that one request follows. 5 by default; 0
  ///     refuses all redirects.
  ///   - requestTimeout: The longest time without a byte from the server, rounded up to whole
  ///     seconds. 30 seconds by default.
  ///   - resourceTimeout: The longest time for the whole exchange, even if bytes keep arriving. 120
  ///     seconds by default.
  ///   - configuration: The session's headers, proxies and other settings. It is copied; its
  ///     timeouts, caches, cookies and credentials are not used. Ephemeral by default.
  public init(
    maximumResponseBytes: Int = 16 << 20, maximumRedirects: Int = 5,
    requestTimeout: Duration = .seconds(30), resourceTimeout: Duration = .seconds(120),
    configuration: URLSessionConfiguration = .ephemeral
  ) {
    precondition(maximumResponseBytes >= 0, "maximumResponseBytes must not be negative")
    precondition(maximumRedirects >= 0, "maximumRedirects must not be negative")
    precondition(requestTimeout > .zero && resourceTimeout > .zero, "timeouts must be positive")
    // Foundation counts milliseconds, and `Task.sleep` nanoseconds, in 64 bits.
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
    // A session retains itself and its delegate until it is invalidated.
    exchanges.commands.async { [session] in session.invalidateAndCancel() }
  }

  /// Sends one request and returns the response, whatever its status.
  ///
  /// - Parameters:
  ///   - request: The request, with an `http` or `https` URL.
  ///   - body: The body; empty for none.
  /// - Returns: The response of the last server in a chain of redirects, with header fields of the
  ///   same name joined by commas.
  /// - Throws: `URLError` if the network fails or the request has no URL, `URLError(.timedOut)` at
  ///   a time limit, `URLError(.cancelled)` if the calling task is cancelled, and
  ///   ``HTTPClientError`` if the response exceeds another limit.
  /// - Complexity: One request, and one per redirect followed.
  public func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
    guard request.url != nil, var request = URLRequest(httpRequest: request) else {
      throw URLError(.unsupportedURL)
    }
    if !body.isEmpty { request.httpBody = body }
    let exchange = Exchange(limits)
    // Linux does not implement the resource timeout, so the client measures it on every platform.
    let timer = Task {
      try await Task.sleep(for: limits.duration)
      exchanges.stop(exchange, with: URLError(.timedOut))
    }
    defer { timer.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        exchange.begin(continuation)
        exchanges.start(exchange, request, in: session)
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

private typealias Reply = (HTTPResponse, Data)

/// One request, from its start to its result.
///
/// The first result that is set stays in effect; later ones are ignored.
private final class Exchange: Sendable {
  private struct State {
    var continuation: CheckedContinuation<Reply, any Error>?
    var result: Result<Reply, any Error>?
    var task: URLSessionTask?
    var body = Data()
    var redirects = 0
  }

  private let limits: Limits
  private let state = Mutex(State())

  init(_ limits: Limits) { self.limits = limits }

  func begin(_ continuation: CheckedContinuation<Reply, any Error>) {
    let early = state.withLock { state in
      if state.result == nil { state.continuation = continuation }
      return state.result
    }
    if let early { continuation.resume(with: early) }
  }

  func end(with result: Result<Reply, any Error>) {
    let continuation = state.withLock { state in
      guard state.result == nil else { return nil as CheckedContinuation<Reply, any Error>? }
      state.result = result
      state.body = Data()
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(with: result)
  }

  var hasEnded: Bool { state.withLock { $0.result != nil } }

  /// Attaches the exchange's task; false if the exchange has already ended.
  func attach(_ task: URLSessionTask) -> Bool {
    state.withLock { state in
      guard state.result == nil else { return false }
      state.task = task
      return true
    }
  }

  func cancelTask() { state.withLock { $0.task }?.cancel() }

  /// Returns why a body of this declared length is rejected; nil if it is accepted.
  func refusal(ofDeclared count: Int64) -> HTTPClientError? {
    count > Int64(limits.responseBytes) ? .responseTooLarge(limit: limits.responseBytes) : nil
  }

  /// Appends a piece of the body, or returns why it is rejected.
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

  /// Follows or refuses a redirect, unless the exchange has ended.
  ///
  /// A refusal ends the exchange.
  ///
  /// `completion` is called under the lock: on Linux a call after a cancellation ends the process.
  /// A cancellation ends the exchange first, and cancels the task after that.
  func redirect(
    _ response: HTTPURLResponse, to request: URLRequest, completion: (URLRequest?) -> Void
  ) {
    let refused = state.withLock { state in
      guard state.result == nil else { return false }
      state.redirects += 1
      let follows =
        state.redirects <= limits.redirects
        && allowsRedirect(
          from: response.url, to: request.url,
          location: response.value(forHTTPHeaderField: "Location"))
      completion(follows ? redirected(request, from: response.url) : nil)
      return !follows
    }
    if refused { end(with: .failure(HTTPClientError.redirectRefused(to: request.url))) }
  }

  func complete(_ response: URLResponse?, _ error: (any Error)?) {
    if let error { return end(with: .failure(error)) }
    guard let response = response as? HTTPURLResponse else {
      return end(with: .failure(HTTPClientError.unexpectedResponse))
    }
    guard let head = response.httpResponse else {
      return end(with: .failure(HTTPClientError.unexpectedResponse))
    }
    let body = state.withLock { $0.body }
    end(with: .success((head, body)))
  }
}

/// A session's delegate, which passes the events of its tasks to their exchanges.
///
/// Tasks are made, started and cancelled on a separate queue, in that order. Each of these steps
/// waits for the session's queue, which on Linux a fast server keeps busy for as long as it sends.
/// Waiting elsewhere would block a caller, or the delegate queue, where pieces of a body wait.
private final class Exchanges: NSObject, URLSessionDataDelegate, Sendable {
  let commands = DispatchQueue(label: "larder.feeds.http")
  private let running = Mutex<[Int: Exchange]>([:])

  func start(_ exchange: Exchange, _ request: URLRequest, in session: URLSession) {
    commands.async {
      guard !exchange.hasEnded else { return }
      let task = session.dataTask(with: request)
      guard exchange.attach(task) else { return task.cancel() }
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
    // Linux ignores the disposition.
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
    exchange(of: task)?.redirect(response, to: request, completion: completionHandler)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    #if canImport(FoundationNetworking)
      // On Linux a challenge arrives after the body of the 401, and no disposition completes the
      // task with that response.
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

/// Rounds a timeout up to whole seconds.
///
/// Linux truncates the fraction, so a timeout below one second would expire at once.
package func wholeSeconds(_ timeout: Duration) -> TimeInterval {
  let (seconds, attoseconds) = timeout.components
  return TimeInterval(attoseconds > 0 ? seconds + 1 : seconds)
}

/// A redirected request as it may be sent to its target.
///
/// Another server gets no header fields in which a program puts its credentials, whatever their
/// names: only those that describe what the client accepts and the body.
private func redirected(_ request: URLRequest, from source: URL?) -> URLRequest {
  func origin(_ url: URL?) -> [String] {
    let scheme = url?.scheme?.lowercased() ?? ""
    let port = url?.port ?? (scheme == "https" ? 443 : 80)
    return [scheme, url?.host()?.lowercased() ?? "", "\(port)"]
  }
  guard origin(source) != origin(request.url) else { return request }
  var request = request
  let kept: Set = ["accept", "accept-encoding", "accept-language", "content-type", "user-agent"]
  for name in (request.allHTTPHeaderFields ?? [:]).keys where !kept.contains(name.lowercased()) {
    request.setValue(nil, forHTTPHeaderField: name)
  }
  return request
}

/// Whether a redirect leads to `http` or `https`, and not from `https` to `http`.
///
/// `location` is the header as the server sent it: Linux interprets a `file:` URL in it as a path
/// on the server, so `target` alone does not show its scheme.
package func allowsRedirect(from source: URL?, to target: URL?, location: String?) -> Bool {
  let written = location.flatMap(URL.init(string:))?.scheme ?? target?.scheme
  let schemes = [target?.scheme, written].map { $0?.lowercased() }
  if source?.scheme?.lowercased() == "https" { return schemes.allSatisfy { $0 == "https" } }
  return schemes.allSatisfy { $0 == "http" || $0 == "https" }
}
