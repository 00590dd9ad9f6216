import Foundation

/// A new directory that is deleted with its contents when this value is destroyed.
package struct TemporaryDirectory: ~Copyable {
  /// The path of the directory, without symbolic links.
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
      // The test may have deleted it. Leftovers stay in the system's temporary directory.
    }
  }

  /// The path of an entry in the directory, which need not exist.
  package func path(_ name: String) -> String { "\(path)/\(name)" }
}
