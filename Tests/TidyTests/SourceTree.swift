import Foundation

/// One text file of the repository, with its path from the repository's root.
struct SourceFile: Sendable {
  let path: String
  let text: String
  let lines: [Substring]
  /// The lines with comments and strings blanked out; empty unless the file is Swift, C or C++.
  let code: [Substring]

  init(path: String, text: String) {
    self.path = path
    self.text = text
    lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let language: CodeMask.Language? =
      switch (path as NSString).pathExtension {
      case "swift": .swift
      case "h", "c", "cc", "cpp": .c
      default: nil
      }
    code =
      language.map {
        CodeMask.mask(text, as: $0).split(separator: "\n", omittingEmptySubsequences: false)
      } ?? []
  }

  var isCode: Bool { !code.isEmpty }
  var isSwift: Bool { path.hasSuffix(".swift") }

  /// The number of lines, without the empty one after a final newline.
  var lineCount: Int { lines.last?.isEmpty == true ? lines.count - 1 : lines.count }

  /// The target of a file under `Sources`.
  var target: String? {
    let parts = path.split(separator: "/")
    return parts.count > 2 && parts[0] == "Sources" ? String(parts[1]) : nil
  }

  /// Whether a word occurs anywhere in the file, which the C library finds out at once.
  func mentions(_ word: String) -> Bool { strstr(text, word) != nil }

  func isUnder(_ folder: String) -> Bool { path.hasPrefix(folder + "/") }
}

/// The text files of this repository.
struct SourceTree: Sendable {
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The repository's files, read once for all rules.
  static let repository = SourceTree(readingFrom: root)

  let files: [SourceFile]

  var code: [SourceFile] { files.filter(\.isCode) }

  func files(under folder: String) -> [SourceFile] { code.filter { $0.isUnder(folder) } }

  func file(at path: String) -> SourceFile? { files.first { $0.path == path } }

  /// Skips hidden folders except `.ci`, links, and files that are not UTF-8 text.
  private init(readingFrom root: URL) {
    let keys: Set<URLResourceKey> = [.isDirectoryKey, .isSymbolicLinkKey, .isRegularFileKey]
    let start = root.standardizedFileURL.path(percentEncoded: false)
    var files: [SourceFile] = []
    let walk = FileManager.default.enumerator(at: root, includingPropertiesForKeys: Array(keys))
    while let url = walk?.nextObject() as? URL {
      let name = url.lastPathComponent
      let values = try? url.resourceValues(forKeys: keys)
      if values?.isSymbolicLink == true || name.hasPrefix(".") && name != ".ci" {
        walk?.skipDescendants()
      } else if values?.isRegularFile == true,
        let data = try? Data(contentsOf: url), let text = String(data: data, encoding: .utf8)
      {
        let path = url.standardizedFileURL.path(percentEncoded: false)
        files.append(SourceFile(path: String(path.dropFirst(start.count)), text: text))
      }
    }
    self.files = files.sorted { $0.path < $1.path }
  }
}
