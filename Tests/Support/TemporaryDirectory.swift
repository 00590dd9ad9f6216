import Foundation

/// A fresh directory that is deleted, with all that is in it, when its value ends.
package struct TemporaryDirectory: ~Copyable {
  /// The directory itself, its path without links.
  package let path: String

  package init() throws {
    let place = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    path = place.appending(path: "larder-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      // A test may have deleted it itself. What stays is in the system's temporary directory.
    }
  }

  /// A path in the directory, where nothing need be.
  package func path(_ name: String) -> String { "\(path)/\(name)" }
}
