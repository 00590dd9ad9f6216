import Foundation
import LarderTestSupport
import Testing

/// A running `kvinspect serve` of a store of its own.
final class PageServer: @unchecked Sendable {
  let store: String
  /// The directory for its snapshots.
  let temporary: String
  let port: Int
  let token: String
  private let directory: TemporaryDirectory
  let program: String
  private var process: ChildProcess

  /// Makes a store as `page-store` does with these words, and serves it.
  init(of words: String...) throws {
    directory = try TemporaryDirectory()
    store = directory.path("store")
    temporary = directory.path("temporary")
    try FileManager.default.createDirectory(
      atPath: temporary, withIntermediateDirectories: false)
    var maker = try ChildProcess("page-store", [store] + (words.isEmpty ? ["specimen"] : words))
    while maker.readLine() != nil {}
    program = try #require(ChildProcess.path(of: "kvinspect"))
    process = try ChildProcess(
      "/usr/bin/env", ["TMPDIR=\(temporary)", program, "serve", store, "--quiet"])
    let first = process.readLine()
    let line = try #require(first)
    let address = try #require(URL(string: line))
    #expect(address.scheme == "http" && address.host == "127.0.0.1")
    port = try #require(address.port)
    token = String(address.path.split(separator: "/")[0])
    #expect(line == "http://127.0.0.1:\(port)/\(token)/" && token.count == 32)
  }

  /// A browser's request for a view.
  func request(_ view: String) -> String {
    "GET /\(token)/\(view) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n"
  }

  func get(_ view: String) throws -> HTTPReply { try send(request(view)) }

  /// Sends bytes, in which TOKEN stands for the token, and reads all that is answered.
  func send(_ text: String) throws -> HTTPReply {
    let connection = try Connection(to: port)
    defer { connection.close() }
    // The server may answer, and close the connection, before it has read all.
    do { try connection.write(text.replacing("TOKEN", with: token)) } catch is Connection.Failure {}
    return HTTPReply(try connection.readAll())
  }

  /// Sends a signal, and returns when the program has ended.
  func end(by signal: Int32) {
    kill(process.id, signal)
    while process.readLine() != nil {}
  }

  /// Starts a second program on a port, and returns its exit code.
  func second(on port: Int) throws -> Int? {
    var shell = try ChildProcess(
      "/bin/sh",
      ["-c", "\"$0\" serve \"$1\" --quiet --port \"$2\"; echo $?", program, store, "\(port)"])
    return shell.readLine().flatMap { Int($0) }
  }
}

/// A response of HTTP/1.1; its status is 0 if it is none.
struct HTTPReply {
  let status: Int
  /// By their names in lower case.
  let headers: [String: String]
  let body: String

  init(_ text: String) {
    let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    let lines = parts[0].split(separator: "\r\n")
    status = lines.first.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") } ?? 0
    headers = Dictionary(
      lines.dropFirst().compactMap { line in
        let pair = line.split(separator: ":", maxSplits: 1)
        return pair.count == 2
          ? (pair[0].lowercased(), pair[1].trimmingCharacters(in: .whitespaces)) : nil
      }, uniquingKeysWith: { $1 })
    let rest = parts.count == 2 ? String(parts[1]) : ""
    body = headers["transfer-encoding"] == "chunked" ? Self.dechunked(rest) : rest
  }

  private static func dechunked(_ text: String) -> String {
    var (rest, body) = (Array(text.utf8)[...], [UInt8]())
    while let end = rest.firstIndex(of: UInt8(ascii: "\r")),
      let count = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16), count > 0
    {
      body += rest[(end + 2)...].prefix(count)
      rest = rest[(end + 2)...].dropFirst(count + 2)
    }
    return String(decoding: body, as: UTF8.self)
  }
}

/// A connection to a port of this machine.
final class Connection {
  struct Failure: Error {}

  private let file: Int32
  private var isOpen = true
  private var received: [UInt8] = []

  /// Connects; `buffer` is the size of the system's buffer for what was not read, nil for its own.
  init(to port: Int, receiving buffer: Int32? = nil) throws {
    file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    // A call that takes too long fails, and so does its test.
    var limit = timeval(tv_sec: TimeLimit.seconds, tv_usec: 0)
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    if var buffer {
      setsockopt(file, SOL_SOCKET, SO_RCVBUF, &buffer, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Failure() }
  }

  deinit { close() }

  func close() {
    if isOpen { Foundation.close(file) }
    isOpen = false
  }

  func write(_ text: String) throws {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure() }
      rest = rest.dropFirst(count)
    }
  }

  /// Everything until the server closes the connection.
  func readAll() throws -> String {
    while try readSome() {}
    return String(decoding: received, as: UTF8.self)
  }

  /// Reads until a text has come; false if the connection ends before.
  func read(until text: String) throws -> Bool {
    while !String(decoding: received, as: UTF8.self).contains(text) {
      guard try readSome() else { return false }
    }
    return true
  }

  private func readSome() throws -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(file, &buffer, buffer.count, 0)
    // A connection that was reset has ended, too; one that says nothing fails.
    guard count >= 0 || errno == ECONNRESET else { throw Failure() }
    received += buffer.prefix(max(count, 0))
    return count > 0
  }
}
