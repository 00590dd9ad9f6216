import Foundation
import LarderInspection

/// Standard output, in pieces of some size.
///
/// When whoever reads it has had enough (`| head`), the process ends, and that is no failure.
struct StandardOutput: TextOutputStream {
  private static let pieceBytes = 32 << 10

  private var waiting: [UInt8] = []

  mutating func write(_ string: String) { write(Array(string.utf8)) }

  mutating func write(_ bytes: [UInt8]) {
    waiting += bytes
    if waiting.count >= Self.pieceBytes { flush() }
  }

  mutating func flush() {
    var rest = waiting[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(1, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EPIPE {
        Inspection.removeSnapshots(thenExit: Outcome.fine.rawValue)
      } else if errno != EINTR {
        say("cannot write: \(String(cString: strerror(errno)))")
        Inspection.removeSnapshots(thenExit: Outcome.io.rawValue)
      }
    }
    waiting.removeAll(keepingCapacity: true)
  }
}

/// Writes a message for people to standard error.
func say(_ message: String) {
  FileHandle.standardError.write(Data("kvinspect: \(message)\n".utf8))
}
