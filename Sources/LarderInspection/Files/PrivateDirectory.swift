import Foundation
import Synchronization

/// A directory for this process alone, gone with its last reference or when the process is ended.
package final class PrivateDirectory: Sendable {
  private static let made = Mutex<Set<String>>([])

  let path: String

  /// Makes one in `parent`; nil when that is refused there.
  init?(in parent: String, named prefix: String) {
    // The lock is held while it is made, so that no signal finds it made and not yet noted.
    let path = Self.made.withLock { made -> String? in
      var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
      guard let name = mkdtemp(&template) else { return nil }
      let path = String(cString: name)
      made.insert(path)
      return path
    }
    guard let path else { return nil }
    self.path = path
  }

  deinit {
    Self.made.withLock { made in
      Self.remove(path)
      made.remove(path)
    }
  }

  /// Removes whatever is in the directory, and keeps it.
  func empty() throws(InspectionError) {
    for name in try FileAccess.names(in: path) {
      guard unlink("\(path)/\(name)") == 0 || errno == ENOENT else {
        throw InspectionError(.io, "cannot remove \(path)/\(name)")
      }
    }
  }

  /// Removes every private directory and ends the process: for signals, and for a closed pipe.
  ///
  /// No directory can be made any more once this has begun.
  package static func removeAll(thenExit code: Int32) -> Never {
    made.withLock { made in
      for path in made { remove(path) }
      _exit(code)
    }
  }

  private static func remove(_ path: String) {
    // LevelDB may be putting a new file into it from another thread.
    for _ in 0..<10 {
      do {
        try FileManager.default.removeItem(atPath: path)
        return
      } catch {
        // Tried again; a directory that stays is in the system's temporary one or hidden.
      }
    }
  }
}
