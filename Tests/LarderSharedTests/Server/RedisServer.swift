import Foundation
import LarderTestSupport
import Testing

/// A Redis or Valkey server of a test's own, on a socket in a temporary directory.
final class RedisServer {
  /// The error of a server that ends at once.
  struct NotStarted: Error {}

  /// The path of the program; nil if it is not installed.
  static let program: String? = {
    let folders = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
    let paths = ["redis-server", "valkey-server"].flatMap { name in
      folders.map { "\($0)/\(name)" }
    }
    return paths.first { FileManager.default.isExecutableFile(atPath: $0) }
  }()

  let path: String
  private let directory: TemporaryDirectory
  private let words: [String]
  private var process: ChildProcess

  /// Starts a server, which keeps nothing on the disk.
  convenience init(_ options: String...) throws { try self.init(options, start: []) }

  /// Starts a server, which keeps nothing on the disk.
  ///
  /// `start` are words in front of the program that start it, in a network of its own, for example.
  init(_ options: [String], start: [String] = []) throws {
    directory = try TemporaryDirectory()
    path = directory.path("server")
    let server =
      [Self.program ?? ""] + [
        "--port", "0", "--unixsocket", path, "--dir", directory.path(""), "--save", "",
        "--appendonly", "no",
      ]
    words = start + server + options
    process = try Self.start(words)
  }

  private static func start(_ words: [String]) throws -> ChildProcess {
    var process = try ChildProcess(words[0], Array(words.dropFirst()))
    while let line = process.readLine() {
      guard line.contains("server is now ready to accept connections at") else { continue }
      process.ignoreOutput()
      return process
    }
    throw NotStarted()
  }

  var processID: Int32 { process.id }

  func kill() { process.kill() }

  func restart() throws {
    process.kill()
    process = try Self.start(words)
  }

  /// Stops the server's process, or lets it continue.
  func setStopped(_ isStopped: Bool) {
    _ = Foundation.kill(process.id, isStopped ? SIGSTOP : SIGCONT)
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips tests where there is no server to start.
  static var withRedisServer: Self {
    .enabled(
      if: RedisServer.program != nil,
      "redis-server is not installed; `make shared-test` installs it")
  }
}
