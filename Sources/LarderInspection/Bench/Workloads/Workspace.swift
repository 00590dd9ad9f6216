import Foundation
import Larder

/// The directories of a run, all inside one root directory.
struct Workspace {
  private let root: URL

  /// Creates the directory `root`.
  init(at root: URL) throws {
    self.root = root
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  func directory(_ name: String) -> URL { root.appending(path: name, directoryHint: .isDirectory) }

  /// Replaces `name` with a copy of `original`, and returns it.
  func copy(of original: URL, as name: String) throws -> URL {
    try remove(name)
    try FileManager.default.copyItem(at: original, to: directory(name))
    return directory(name)
  }

  /// Removes `name` if it exists.
  func remove(_ name: String) throws {
    let path = directory(name).path(percentEncoded: false)
    guard FileManager.default.fileExists(atPath: path) else { return }
    try FileManager.default.removeItem(at: directory(name))
  }
}

extension Store.Options {
  /// The default options without memory for values, so that every read is from disk.
  static var withoutMemory: Store.Options {
    var options = Store.Options()
    options.memoryBytes = 0
    return options
  }
}
