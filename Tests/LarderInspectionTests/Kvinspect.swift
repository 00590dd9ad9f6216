import Foundation
import Larder
import LarderTestSupport
import Testing

/// A running `kvinspect` that makes its private directories in the given directory.
final class Kvinspect {
  let process = Process()
  let output = Pipe()
  let errors = Pipe()
  private let watch: ChildWatch

  // `largestFile` limits the size of its files, in blocks of 512 bytes.
  init(_ arguments: [String], temporary: String, largestFile: Int? = nil) throws {
    let program = try #require(ChildProcess.path(of: "kvinspect"))
    process.executableURL = URL(filePath: largestFile == nil ? program : "/bin/sh")
    let limiting = largestFile.map { ["-c", "ulimit -f \($0) && exec \"$0\" \"$@\"", program] }
    process.arguments = (limiting ?? []) + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["TMPDIR": temporary], uniquingKeysWith: { $1 })
    process.standardOutput = output
    process.standardError = errors
    try Self.withoutBlockedSignals { [process] in try process.run() }
    watch = ChildWatch(process.processIdentifier, "kvinspect \(arguments)")
  }

  /// Calls `body` with no signal blocked.
  ///
  /// A thread that runs tests may block all signals, and a program that it starts inherits that: a
  /// signal that would end the program then does nothing.
  private static func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
    var (none, blocked) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &blocked)
    defer { pthread_sigmask(SIG_SETMASK, &blocked, nil) }
    try body()
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  /// Reads its output, and waits until it has exited.
  func finish() throws -> (status: Int32, bytes: Data, output: String, errors: String) {
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    let message = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    watch.end()
    return (
      process.terminationStatus, text, String(decoding: text, as: UTF8.self),
      String(decoding: message, as: UTF8.self)
    )
  }
}

/// A specimen with 20,000 more records, so that its list fills any pipe.
func largeStore() throws -> Specimen {
  let specimen = try Specimen()
  let store = try Specimen.open(specimen.path)
  let cache = try store.cache("large", of: Int.self)
  try store.write { batch in
    for index in 0..<20_000 { batch.save(index, for: "key \(index)", in: cache) }
  }
  try store.close()
  return specimen
}
