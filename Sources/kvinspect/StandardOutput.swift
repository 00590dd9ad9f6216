import Foundation
import LarderInspection

/// Buffered standard output.
///
/// If the reader closes the pipe (`| head`), the process exits with code 0.
struct StandardOutput: FlushedOutput {
  private static let pieceBytes = 32 << 10

  /// The progress of the command, on a terminal; nil if it is not shown.
  let progress: ProgressLine?
  private let isTerminal = isatty(1) != 0
  private var waiting: [UInt8] = []

  /// - Parameter showsProgress: Whether progress is shown if standard error is a terminal.
  init(showsProgress: Bool) {
    let isShown = showsProgress && isatty(2) != 0
    progress = isShown ? ProgressLine { FileHandle.standardError.write(Data($0.utf8)) } : nil
  }

  mutating func write(_ string: String) { write(string.utf8) }

  mutating func write(_ bytes: some Sequence<UInt8>) {
    waiting.append(contentsOf: bytes)
    if waiting.count >= Self.pieceBytes { flush() }
  }

  mutating func flush() {
    // A line of output and the line of the progress must not mix.
    if isTerminal, !waiting.isEmpty { progress?.end() }
    var rest = waiting[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(1, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EPIPE {
        Inspection.removeSnapshots(thenExit: Outcome.fine.rawValue)
      } else if errno != EINTR {
        printMessage("cannot write: \(String(cString: strerror(errno)))")
        Inspection.removeSnapshots(thenExit: Outcome.io.rawValue)
      }
    }
    waiting.removeAll(keepingCapacity: true)
  }
}

/// Writes a message to standard error.
func printMessage(_ message: String) {
  FileHandle.standardError.write(Data("kvinspect: \(message)\n".utf8))
}
