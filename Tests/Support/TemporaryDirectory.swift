package import Foundation

/// A new directory that is deleted with its contents when this value is destroyed.
package struct TemporaryDirectory: ~Copyable {
  /// The path of the directory, without symbolic links.
  package let path: String

  /// The directory of all temporary directories.
  ///
  /// Tests wait for a disk most of their time, so this is in memory where the system has a file
  /// system there with much room. With `TMPDIR` it is the place that `TMPDIR` says.
  package static let place: URL = {
    let memory = "/dev/shm"
    let isChosen = ProcessInfo.processInfo.environment["TMPDIR"] != nil
    let room = try? FileManager.default.attributesOfFileSystem(forPath: memory)[.systemFreeSize]
    guard !isChosen, let room = room as? Int, room >= 2 << 30 else {
      return FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    }
    return URL(filePath: memory)
  }()

  package init() throws {
    path = Self.place.appending(path: "larder-\(UUID().uuidString)").path
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
