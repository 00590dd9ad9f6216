import Foundation

/// The process of one of two compared builds.
///
/// The process prints the name of a workload. For each line `run` that it reads, it runs Larder's
/// side once and prints the nanoseconds per operation. At the line `next` it continues with the
/// next workload, or prints `end`.
final class BuildProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var buffer = Data()
  private var hasWorkload = false

  init(_ binary: URL, _ arguments: [String]) throws {
    process.executableURL = binary
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  /// Advances to the next workload and returns its name; nil at the end.
  func nextWorkload() throws -> String? {
    if hasWorkload { try send("next") }
    let line = try readReply()
    guard line.hasPrefix("workload ") else { return nil }
    hasWorkload = true
    return String(line.dropFirst("workload ".count))
  }

  /// Runs the workload once, and returns the time per operation.
  func run() throws -> Duration {
    try send("run")
    let line = try readReply()
    guard let nanoseconds = Double(line) else { throw failure("printed \(line)") }
    return .seconds(nanoseconds / 1e9)
  }

  func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw failure("exited") }
  }

  private func send(_ line: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
  }

  private func readReply() throws -> String {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer = buffer[(end + 1)...] }
        return String(decoding: buffer[..<end], as: UTF8.self)
      }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else {
        process.waitUntilExit()
        throw failure("exited")
      }
      buffer += more
    }
  }

  private func failure(_ what: String) -> WrongResults {
    WrongResults(description: "\(process.executableURL?.path() ?? "a process") \(what)")
  }
}

/// Serves a ``BuildProcess``.
enum Server {
  static func serve(_ arguments: Arguments) throws {
    // The comparing process may exit at any time; the databases must still be removed.
    signal(SIGPIPE, SIG_IGN)
    for suite in arguments.selectedSuites {
      try Workspace.withTemporary { workspace in
        let (contests, close) = try suite.prepare(arguments.scale, workspace)
        for contest in contests where arguments.selects(contest.name) {
          LarderBench.printLine("workload \(contest.name)")
          try serve(contest)
        }
        try close()
      }
    }
    LarderBench.printLine("end")
  }

  private static func serve(_ contest: Contest) throws {
    while let line = readLine() {
      guard line == "run" else { return }
      LarderBench.printLine("\(try contest.a() / .nanoseconds(contest.operations))")
    }
    throw UsageError(description: "standard input was closed")
  }
}
