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

/// The terminal that a program writes to.
struct Terminal {
  /// The number of characters in a line; nil if the terminal does not tell.
  let width: Int?
  let showsColors: Bool

  /// The terminal of standard output; nil if that is a pipe or a file.
  static var ofOutput: Terminal? {
    guard isatty(1) != 0 else { return nil }
    var size = winsize()
    let isKnown = ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
    let environment = ProcessInfo.processInfo.environment
    return Terminal(
      width: isKnown ? Int(size.ws_col) : nil,
      showsColors: environment["NO_COLOR"] ?? "" == "" && environment["TERM"] != "dumb")
  }
}

/// Handles signals that end the process.
enum Signals {
  /// Makes SIGINT, SIGTERM and SIGHUP remove snapshots before they end the process.
  ///
  /// SIGPIPE is ignored, so that writing to a closed pipe is an error that ``StandardOutput`` sees.
  /// SIGXFSZ is ignored, so that a file at the limit of its size is an error that the store sees.
  /// Must be called before another thread starts: all threads must inherit the blocked signals, so
  /// that only the waiting thread receives them.
  static func removeSnapshotsWhenEnded() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    var ending = sigset_t()
    sigemptyset(&ending)
    for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&ending, number) }
    pthread_sigmask(SIG_BLOCK, &ending, nil)
    let awaited = ending
    Thread.detachNewThread {
      var number: Int32 = 0
      var awaited = awaited
      guard sigwait(&awaited, &number) == 0 else { return }
      Inspection.removeSnapshots(thenExit: 128 + number)
    }
  }
}
