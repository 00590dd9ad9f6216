package import Foundation

/// The attributes of a file or directory, which are equal if it was not changed.
package struct FileFacts: Hashable, Sendable {
  package let bytes: Int
  package let node: UInt64
  package let modified: Date

  package init(of path: String) throws {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    bytes = attributes[.size] as? Int ?? -1
    node = (attributes[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0
    modified = attributes[.modificationDate] as? Date ?? .distantPast
  }

  /// The facts of a directory's entries by name, and of the directory itself as ".".
  package static func all(in directory: String) throws -> [String: FileFacts] {
    var facts = [".": try FileFacts(of: directory)]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
      facts[name] = try FileFacts(of: "\(directory)/\(name)")
    }
    return facts
  }
}

/// Damages files for tests.
package enum Damage {
  /// Inverts one byte of the file.
  package static func flipByte(at offset: Int, of path: String) throws {
    var bytes = try Data(contentsOf: URL(filePath: path))
    bytes[offset] ^= 0xFF
    try bytes.write(to: URL(filePath: path))
  }

  /// The paths of the files in `directory` whose names end in `suffix`, in order of name.
  package static func files(in directory: String, endingIn suffix: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory)
      .filter { $0.hasSuffix(suffix) }.sorted().map { "\(directory)/\($0)" }
  }
}
