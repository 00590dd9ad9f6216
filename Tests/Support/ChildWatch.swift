import Synchronization

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A watch that ends a child process together with this process.
///
/// A child that runs for longer than ``TimeLimit/seconds`` ends the test run. A shell that reads
/// from a pipe keeps a list of the children. When this process ends in any way, the pipe is closed,
/// and the shell kills them.
package final class ChildWatch: Sendable {
  private let process: Int32
  private let limit: TimeLimit

  /// Starts to watch a child.
  package init(_ process: Int32, _ name: String) {
    self.process = process
    Guardian.say("+ \(process)")
    limit = TimeLimit {
      fatalError("\(name) ran for \(TimeLimit.seconds) seconds, and its test still waits for it")
    }
  }

  deinit { end() }

  /// Ends the watch, just before or after the child is waited for.
  ///
  /// A second call does nothing.
  package func end() {
    limit.lift()
    Guardian.say("- \(process)")
  }
}

private enum Guardian {
  private static let input = Mutex(start())

  static func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    input.withLock { input in
      _ = bytes.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
    }
  }

  private static let script = """
    exec >/dev/null 2>&1
    trap '' INT TERM HUP
    ids=' '
    while read -r sign id; do
      case $sign$ids in
        +*) ids="$ids$id " ;;
        -*" $id "*) ids="${ids%%" $id "*} ${ids#*" $id "}" ;;
      esac
    done
    [ "$ids" = ' ' ] || kill -9 $ids
    """

  /// Starts the shell, and returns the pipe to its input.
  private static func start() -> Int32 {
    do {
      let shell = try ChildProcess.start(["/bin/sh", "-c", script])
      close(shell.output)
      return shell.input
    } catch {
      fatalError("children cannot be watched: \(error)")
    }
  }
}
