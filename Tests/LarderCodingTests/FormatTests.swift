import Foundation
import Testing

@testable import Larder

/// The payloads have the documented format.
@Suite struct PayloadFormatTests {
  private struct Person: Codable, Equatable {
    var name: String
    var age: Int?
  }

  /// Reads the example from `StorageFormat.md`.
  @Test("The documentation's example is exactly what the coder writes.")
  func documentedExample() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = root.appending(path: "Sources/Larder/Documentation.docc/StorageFormat.md")
    let text = try String(contentsOf: file, encoding: .utf8)
    let chapter = try #require(text.components(separatedBy: "## Binary payloads").last)
    let block = chapter.components(separatedBy: "```")
    try #require(block.count > 1)
    let bytes = block[1].split(separator: "\n").dropFirst().flatMap { line in
      line.split(separator: " ").prefix { $0.count == 2 && UInt8($0, radix: 16) != nil }
        .compactMap { UInt8($0, radix: 16) }
    }
    let people = [Person(name: "Ada", age: 36), Person(name: "Bob", age: nil)]
    #expect(try decoded(from: bytes) == people)
    #expect(hex(try encoded(people)) == hex(bytes))
  }
}

func hex(_ bytes: [UInt8]) -> String {
  bytes.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
}
