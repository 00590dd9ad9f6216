import Foundation

/// One build of two that are compared, in a process of its own.
///
/// The process names a workload, runs Larder's side of it once for each line `run` that it reads,
/// and prints the nanoseconds for one operation. At the line `next` it goes on to another workload,
/// or to `end`.
final class Served {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var waiting = Data()
  private var isOnWorkload = false

  init(by binary: URL, with arguments: [String]) throws {
    process.executableURL = binary
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  /// Goes on to the next workload; nil when there is none.
  func nextWorkload() throws -> String? {
    if isOnWorkload { try ask("next") }
    let line = try answer()
    guard line.hasPrefix("workload ") else { return nil }
    isOnWorkload = true
    return String(line.dropFirst("workload ".count))
  }

  /// Runs the workload once, and tells how long one operation took.
  func run() throws -> Duration {
    try ask("run")
    let line = try answer()
    guard let nanoseconds = Double(line) else { throw broken("said \(line)") }
    return .seconds(nanoseconds / 1e9)
  }

  func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw broken("ended") }
  }

  private func ask(_ line: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
  }

  private func answer() throws -> String {
    while true {
      if let end = waiting.firstIndex(of: UInt8(ascii: "\n")) {
        defer { waiting = waiting[(end + 1)...] }
        return String(decoding: waiting[..<end], as: UTF8.self)
      }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else {
        process.waitUntilExit()
        throw broken("ended")
      }
      waiting += more
    }
  }

  private func broken(_ what: String) -> WrongResults {
    WrongResults(description: "\(process.executableURL?.path() ?? "a process") \(what)")
  }
}

/// The other end of ``Served``.
enum Server {
  static func serve(_ arguments: Arguments) throws {
    // Whoever compares may end at any time; the databases are removed all the same.
    signal(SIGPIPE, SIG_IGN)
    for suite in arguments.wantedSuites {
      try Workspace.withTemporary { workspace in
        let (contests, close) = try suite.prepare(arguments.scale, workspace)
        for contest in contests where arguments.wants(contest) {
          LarderBench.say("workload \(contest.name)")
          try serve(contest)
        }
        try close()
      }
    }
    LarderBench.say("end")
  }

  private static func serve(_ contest: Contest) throws {
    while let line = readLine() {
      guard line == "run" else { return }
      LarderBench.say("\(try contest.a() / .nanoseconds(contest.operations))")
    }
    throw Misuse(description: "nobody asks any more")
  }
}
