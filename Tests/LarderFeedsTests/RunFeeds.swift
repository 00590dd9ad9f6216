import Foundation
import LarderTestSupport
import Testing

/// The exit status of the `feeds` program, and its output.
struct Outcome: Sendable {
  var status: Int32
  var bytes: Data
  var complaints: String

  var output: String { String(decoding: bytes, as: UTF8.self) }
}

/// Runs the `feeds` program to its end, and `body` meanwhile.
///
/// Its output must fit into a pipe. The program is killed when the test is cancelled. If a terminal
/// is given, it is the standard output.
func feeds(
  _ arguments: [String], to terminal: FileHandle? = nil, _ body: (Process) async -> Void = { _ in }
) async throws -> Outcome {
  let process = Process()
  let program = try #require(ChildProcess.path(of: "feeds"), "feeds is not beside the tests")
  process.executableURL = URL(filePath: program)
  // A busy machine does not reach this limit.
  process.arguments = arguments + (arguments.first == "validate" ? [] : ["--timeout", "10m"])
  let (output, complaints) = (Pipe(), Pipe())
  process.standardInput = FileHandle.nullDevice
  if let terminal { process.standardOutput = terminal } else { process.standardOutput = output }
  process.standardError = complaints
  let (statuses, ended) = AsyncStream.makeStream(of: Int32.self)
  process.terminationHandler = {
    ended.yield($0.terminationStatus)
    ended.finish()
  }
  try process.run()
  let watch = ChildWatch(process.processIdentifier, "feeds")
  await body(process)
  let status = await statuses.first { _ in true }
  if status == nil { kill(process.processIdentifier, SIGKILL) }
  watch.end()
  return Outcome(
    status: try #require(status, "the test was cancelled before feeds had ended"),
    bytes: terminal == nil ? try written(to: output) : Data(),
    complaints: String(decoding: try written(to: complaints), as: UTF8.self))
}

/// The output of a program that has ended.
private func written(to pipe: Pipe) throws -> Data {
  try pipe.fileHandleForReading.readToEnd() ?? Data()
}
