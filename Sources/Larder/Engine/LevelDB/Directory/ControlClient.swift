#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

import CLarder

/// A client's connection to the process that has a store open.
package struct ControlClient: ~Copyable {
  package enum Failure: Error {
    /// There is no socket: the store does not accept commands.
    case absent
    /// The process that listened has ended, and left the socket.
    case refused
    /// The other end did not accept, take or send anything in time.
    case silent
    /// The connection has ended.
    case ended
    case system(String)
  }

  private let descriptor: Int32
  /// The process that listens; 0 if this process cannot see it.
  package let process: Int32
  private var received: [UInt8] = []

  /// The longest line that is received.
  private static let lineLimit = 64 << 10

  /// Connects to the socket in a store's directory.
  ///
  /// - Parameters:
  ///   - directory: The store's directory, by any path.
  ///   - seconds: The time that each step may take, at least 1.
  /// - Throws: ``Failure/absent``, ``Failure/refused``, ``Failure/silent``, ``Failure/system(_:)``.
  package init(in directory: String, waiting seconds: Int32) throws(Failure) {
    descriptor = clarder_connect(directory, ControlFile.name, seconds)
    guard descriptor >= 0 else { throw Failure(errno: -descriptor) }
    process = SocketPeer(of: descriptor)?.process ?? 0
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Sends a line.
  package func send(_ line: [UInt8]) throws(Failure) {
    var rest = line[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { bytes in
        bytes.baseAddress.map { clarder_send(descriptor, $0, bytes.count) } ?? 0
      }
      guard count > 0 else { throw Failure(errno: Int32(-count)) }
      rest = rest.dropFirst(Int(count))
    }
  }

  /// Receives a line, without its end.
  package mutating func receive() throws(Failure) -> [UInt8] {
    while true {
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        defer { received.removeSubrange(...end) }
        return Array(received[..<end])
      }
      guard received.count <= Self.lineLimit else { throw Failure(errno: EMSGSIZE) }
      var piece = [UInt8](repeating: 0, count: 4096)
      let count = clarder_receive(descriptor, &piece, piece.count)
      guard count != 0 else { throw .ended }
      guard count > 0 else { throw Failure(errno: Int32(-count)) }
      received += piece[..<Int(count)]
    }
  }
}

extension ControlClient.Failure {
  fileprivate init(errno number: Int32) {
    self =
      switch number {
      case ENOENT, ENOTDIR: .absent
      case ECONNREFUSED: .refused
      case EAGAIN, EWOULDBLOCK, ETIMEDOUT: .silent
      case ECONNRESET, EPIPE: .ended
      default: .system(String(cString: strerror(number)))
      }
  }
}

/// The other end of a connection.
struct SocketPeer {
  private(set) var user: UInt32 = 0
  private(set) var process: Int32 = 0

  /// Nil if the system does not say.
  init?(of descriptor: Int32) {
    guard clarder_peer(descriptor, &user, &process) == 0 else { return nil }
  }
}
