import FlyingSocks
package import Foundation

/// A server on loopback that sends raw bytes to one connection, whatever the request.
///
/// It serves what no HTTP library lets a server send.
package final class RawServer: Sendable {
  package let url: URL
  private let serving: Task<Void, any Error>

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - first: What is sent once.
  ///   - more: What is sent after that, again and again until the client closes the connection;
  ///     empty for nothing. The connection is closed then.
  ///   - milliseconds: The time between repetitions.
  /// - Throws: The errors of the socket.
  package init(
    _ first: String, then more: String = "", every milliseconds: Int = 0
  ) async throws {
    let socket = try Socket(domain: AF_INET)
    try socket.bind(to: .inet(ip4: "127.0.0.1", port: 0))
    try socket.listen()
    guard case .ip4(_, let port) = try socket.sockname(),
      let url = URL(string: "http://127.0.0.1:\(port)/")
    else { throw SocketError.unsupportedAddress }
    self.url = url
    let pool: some AsyncSocketPool = .make()
    try await pool.prepare()
    let waiting = try AsyncSocket(socket: socket, pool: pool)
    serving = Task {
      let running = Task { try await pool.run() }
      defer {
        running.cancel()
        try? waiting.close()
      }
      let connection = try await waiting.accept()
      defer { try? connection.close() }
      _ = try await connection.read(atMost: 1 << 16)
      try await connection.write(Data(first.utf8))
      while !more.isEmpty {
        if milliseconds > 0 { await pause(milliseconds: milliseconds) }
        try Task.checkCancellation()
        try await connection.write(Data(more.utf8))
      }
    }
  }

  /// Waits until the client has closed the connection, or until the test is cancelled.
  ///
  /// The server does not close it first: Foundation before Swift 6.4 ends the process when a
  /// connection is closed in the middle of the header fields.
  package func end() async {
    await withTaskCancellationHandler {
      _ = await serving.result
    } onCancel: {
      serving.cancel()
    }
  }
}
