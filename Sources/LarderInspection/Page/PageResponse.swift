import Synchronization

/// What is asked of the page.
package struct PageRequest: Sendable {
  /// The path behind the token, such as `entries`; empty for the first view.
  package let path: String
  /// What is behind the `?`, as it was sent.
  package let query: String

  package init(path: String, query: String) { (self.path, self.query) = (path, query) }
}

/// Where a response is sent to.
///
/// The calls of one response come from one thread, one after another.
package protocol PageClient: AnyObject, Sendable {
  /// Whether the client still waits. Any thread may ask.
  var isThere: Bool { get }

  /// Sends the first part of the response.
  func begin(_ head: PageHead)

  /// Sends a part of the body, and waits until most of it is on its way.
  func send(_ bytes: [UInt8])

  /// Ends the response.
  func end()
}

/// The first part of a response.
package struct PageHead: Sendable {
  package let status: Int
  package let headers: [(name: String, value: String)]

  /// What every response says: that nothing is kept, run or fetched from elsewhere, and that no
  /// other page has a part of it in a frame.
  private static let common = [
    ("Cache-Control", "no-store"),
    (
      "Content-Security-Policy",
      "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        + "base-uri 'none'; frame-ancestors 'none'"
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
  ]

  /// - Parameters:
  ///   - status: The status code of HTTP.
  ///   - type: The media type of the body.
  ///   - more: Other headers.
  package init(
    _ status: Int, type: String = "text/html; charset=utf-8",
    more: [(name: String, value: String)] = []
  ) {
    self.status = status
    headers = Self.common + [("Content-Type", type)] + more
  }
}

/// The body of a response while it is written.
///
/// It begins to be sent when 32 KB wait, or when it is flushed. Until then it can be replaced by
/// another response.
final class PageOutput: FlushedOutput, Sendable {
  private static let pieceBytes = 32 << 10

  private struct State {
    var head: PageHead
    var waiting: [UInt8] = []
    var hasBegun = false
  }

  private let client: any PageClient
  private let state: Mutex<State>

  init(to client: any PageClient) {
    self.client = client
    state = Mutex(State(head: PageHead(200)))
  }

  /// Whether a part of it has been sent.
  var hasBegun: Bool { state.withLock { $0.hasBegun } }

  /// Whether the client still waits for it.
  var isWanted: Bool { client.isThere }

  func write(_ text: String) { write(bytes: text.utf8) }

  func write(_ markup: Markup) { write(bytes: markup.text.utf8) }

  func write(bytes: some Sequence<UInt8>) {
    state.withLock { state in
      state.waiting.append(contentsOf: bytes)
      if state.waiting.count >= Self.pieceBytes { send(&state) }
    }
  }

  /// Discards what waits, and begins another response.
  ///
  /// - Precondition: Nothing has been sent.
  func replace(by head: PageHead) {
    state.withLock { state in
      precondition(!state.hasBegun)
      state = State(head: head)
    }
  }

  func flush() { state.withLock { send(&$0) } }

  func end() {
    flush()
    client.end()
  }

  private func send(_ state: inout State) {
    if !state.hasBegun { client.begin(state.head) }
    state.hasBegun = true
    guard !state.waiting.isEmpty else { return }
    client.send(state.waiting)
    state.waiting.removeAll(keepingCapacity: true)
  }
}
