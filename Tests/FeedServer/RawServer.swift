import FlyingSocks
package import Foundation
import Synchronization

/// A server on loopback that sends raw bytes to one connection, whatever the request.
///
/// It serves what no HTTP library lets a server send. It has a thread of its own, which may block.
package final class RawServer: Sendable {
  package let url: URL
  private let serving: Task<Void, any Error>
  private let address: sockaddr_in
  private let sent = Sent()

  private final class Sent: Sendable {
    let bytes = Atomic(0)
  }

  /// The number of bytes sent so far.
  ///
  /// Some may still be in the system's buffers.
  package var sentBytes: Int { sent.bytes.load(ordering: .relaxed) }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - first: What is sent once.
  ///   - more: What is sent after that, again and again until the client closes the connection;
  ///     empty for nothing. The connection is closed then.
  ///   - milliseconds: The time between repetitions.
  /// - Throws: The errors of the socket.
  package convenience init(
    _ first: String, then more: String = "", every milliseconds: Int = 0
  ) throws {
    try self.init(Data(first.utf8), then: Data(more.utf8), every: milliseconds)
  }

  /// Starts a server, as above, that may send any bytes.
  package init(_ first: Data, then more: Data = Data(), every milliseconds: Int = 0) throws {
    let socket = try Socket(domain: AF_INET)
    try socket.bind(to: .inet(ip4: "127.0.0.1", port: 0))
    try socket.listen()
    guard case .ip4(_, let port) = try socket.sockname(),
      let url = URL(string: "http://127.0.0.1:\(port)/")
    else { throw SocketError.unsupportedAddress }
    self.url = url
    address = try .inet(ip4: "127.0.0.1", port: port)
    serving = Task(executorPreference: ServerThread()) { [sent] in
      defer { try? socket.close() }
      let connection = Socket(file: try socket.accept().file)
      defer { try? connection.close() }
      _ = try connection.read(atMost: 1 << 16)
      try Self.send(first, to: connection, sent)
      while !more.isEmpty {
        if milliseconds > 0 { await pause(milliseconds: milliseconds) }
        try Task.checkCancellation()
        try Self.send(more, to: connection, sent)
      }
    }
  }

  private static func send(_ data: Data, to connection: Socket, _ sent: Sent) throws {
    var index = data.startIndex
    while index < data.endIndex {
      let end = try connection.write(data, from: index)
      sent.bytes.add(end - index, ordering: .relaxed)
      index = end
    }
  }

  /// Waits until the client has closed the connection, or until the test is cancelled.
  ///
  /// A client that has given up before it was connected is not waited for.
  ///
  /// The server does not close it first: Foundation of Swift 6.3 ends the process when a connection
  /// is closed in the middle of the header fields.
  package func end() async {
    // A server that still waits for a client gets this one, which closes its connection at once.
    if let socket = try? Socket(domain: AF_INET) {
      try? socket.connect(to: address)
      try? socket.close()
    }
    await withTaskCancellationHandler {
      _ = await serving.result
    } onCancel: {
      serving.cancel()
    }
  }
}
