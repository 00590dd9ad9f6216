import Foundation

/// The room that the files in a directory take on the disk.
func diskBytes(in directory: URL) throws -> Int {
  let path = directory.path(percentEncoded: false)
  var sum = 0
  for name in try FileManager.default.contentsOfDirectory(atPath: path) {
    var status = stat()
    // A file may have been deleted since the directory was listed.
    if stat("\(path)/\(name)", &status) == 0 { sum += Int(status.st_blocks) * 512 }
  }
  return sum
}

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
