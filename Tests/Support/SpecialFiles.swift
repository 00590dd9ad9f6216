#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A FIFO in place of a file, which a test must not wait for.
///
/// If a thread or another process waits for it for a minute, it gets an empty file, and
/// ``wasAwaited`` is true.
package final class FIFO {
  private let path: String
  private let limit: TimeLimit
  private let awaited = Flag()

  /// Puts a FIFO in place of the file at `path`, which may be missing.
  package init(inPlaceOf path: String) {
    unlink(path)
    guard mkfifo(path, 0o600) == 0 else { fatalError("no FIFO at \(path)") }
    self.path = path
    limit = TimeLimit(seconds: 60) { [awaited] in
      awaited.raise()
      // A thread that waits to open it continues, and one that reads it reaches its end.
      close(open(path, O_RDWR | O_NONBLOCK))
    }
  }

  /// Removes the FIFO.
  package func remove() {
    limit.lift()
    unlink(path)
  }

  package var wasAwaited: Bool { awaited.isRaised }
}
