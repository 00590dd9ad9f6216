import Testing

/// A feed's folder has a model, an endpoint and a policy, stays small and uses no storage.
@Suite struct AdapterTests {
  private static let shared: Set = ["Caching", "HTTP", "Policies"]

  /// The files of each feed's folder.
  private var adapters: [String: [SourceFile]] {
    let files = SourceTree.repository.files(under: "Sources/LarderFeeds")
    return Dictionary(grouping: files) { String($0.path.split(separator: "/")[2]) }
      .filter { !Self.shared.contains($0.key) }
  }

  @Test("Every feed has a folder.")
  func folders() {
    let expected = ["Characters", "EssentialFeed", "Genres", "ImageFeed", "MediaSearch"]
    #expect(adapters.keys.sorted() == expected)
  }

  @Test("No feed's folder has more than 120 lines of code.")
  func codeLines() {
    for (folder, files) in adapters {
      let count = files.map(Adapters.lineCount).reduce(0, +)
      #expect(count <= 120, "\(folder) has \(count) lines of code")
    }
  }

  @Test("No loader accesses the storage itself.")
  func storage() {
    Adapters.storage.expectHolds(in: adapters.values.flatMap { $0 })
  }

  // MARK: - The rules detect violations

  @Test("Only lines of code are counted.")
  func lineCount() {
    let text = "/// words\nlet a = 1\n\n/* two\nlines */\nlet b = \"\"\n"
    #expect(Adapters.lineCount(SourceFile(path: "a.swift", text: text)) == 2)
  }

  @Test(
    "The storage rule detects a bad line.",
    arguments: [
      "let b = ByteBuffer()", "let e = LevelDBEngine()", "JSONDecoder().decode(A.self, from: b)",
      "FileManager.default", "URL(filePath: \"a\")", "try Data(contentsOf: url)",
    ])
  func storageViolations(line: String) {
    #expect(Adapters.storage.lines(brokenBy: "let a = 1\n" + line, at: "a.swift") == [2])
  }
}

enum Adapters {
  static func lineCount(_ file: SourceFile) -> Int {
    file.code.count { line in !line.allSatisfy(\.isWhitespace) }
  }

  static let storage = Rule.bans(
    [
      "ByteBuffer", "Binary", "LevelDBEngine", "JSONDecoder", "JSONEncoder", "FileManager",
      "FileHandle", "filePath", "contentsOf",
    ], because: "a loader returns a model; only the store uses the engine, coders and files")
}
