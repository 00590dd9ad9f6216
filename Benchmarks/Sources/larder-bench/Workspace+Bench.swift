import Foundation

extension Workspace {
  /// Makes `name` a copy of `original` unless it exists, and returns it.
  func copyOnce(of original: URL, as name: String) throws -> URL {
    let copied = directory(name)
    if !FileManager.default.fileExists(atPath: copied.path(percentEncoded: false)) {
      try FileManager.default.copyItem(at: original, to: copied)
    }
    return copied
  }

  /// Lends a temporary directory to `body` and removes it afterwards.
  ///
  /// A directory that cannot be removed is reported and left behind; the results stay valid.
  static func withTemporary(_ body: (Workspace) throws -> Void) throws {
    let root = FileManager.default.temporaryDirectory
      .appending(path: "larder-bench-\(UUID().uuidString)")
    let workspace = try Workspace(at: root)
    defer {
      do {
        try FileManager.default.removeItem(at: root)
      } catch {
        FileHandle.standardError.write(Data("not removed: \(error)\n".utf8))
      }
    }
    try body(workspace)
  }
}
