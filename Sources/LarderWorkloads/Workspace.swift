import Foundation

/// The directories of a run, all in one that is removed at the end.
struct Workspace {
  private let root: URL

  /// Makes the directory `root`.
  init(at root: URL) throws {
    self.root = root
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  func directory(_ name: String) -> URL { root.appending(path: name, directoryHint: .isDirectory) }

  /// Makes `name` a copy of `original`, in place of what it was, and returns it.
  func copy(of original: URL, as name: String) throws -> URL {
    try remove(name)
    try FileManager.default.copyItem(at: original, to: directory(name))
    return directory(name)
  }

  /// Makes `name` a copy of `original` unless it is there, and returns it.
  func copyOnce(of original: URL, as name: String) throws -> URL {
    let copied = directory(name)
    if !FileManager.default.fileExists(atPath: copied.path(percentEncoded: false)) {
      try FileManager.default.copyItem(at: original, to: copied)
    }
    return copied
  }

  /// Removes `name` if it is there.
  func remove(_ name: String) throws {
    let path = directory(name).path(percentEncoded: false)
    guard FileManager.default.fileExists(atPath: path) else { return }
    try FileManager.default.removeItem(at: directory(name))
  }

  func removeAll() throws { try FileManager.default.removeItem(at: root) }
}
