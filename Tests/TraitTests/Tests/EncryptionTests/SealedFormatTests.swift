import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// The bytes of sealed records, as the page StorageFormat describes them.
@Suite(.timeLimit(.minutes(5))) struct SealedFormatTests {
  @Test("A script that knows only the page opens a payload and a validator.")
  func script() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("images of \u{1F600}", of: Data.self, coder: .bytes)
      let value = Data((0..<300).map { UInt8(truncatingIfNeeded: $0) })
      try cache.save(
        value, for: "a key", lifetime: .days(3), validator: "an etag", tags: ["t", "u"])
      try cache.touch("a key")
      let physicalKey = "a key".recordKey(in: cache.core.id).bytes
      let output = try run([
        "userKey": hex([UInt8](repeating: 1, count: 32)),
        "row": hex(try #require(try store.engine.get(Metadata.dataKey(1).span.bytes))),
        "cache": cache.name, "physicalKey": hex(physicalKey),
        "record": hex(try #require(try store.engine.get(physicalKey.span.bytes))),
      ])
      #expect(output == ["payload": hex([UInt8](value)), "validator": hex(Array("an etag".utf8))])
    }
  }

  @Test("Format 3: the rows, the segment and the data keys of the fixture are read.")
  func fixture() throws {
    let rows = try goldenRows()
    for isKeyRowLost in [false, true] {
      let sealed = try SealedStore()
      sealed.clock.set(Self.savedAt + 60)
      let engine = try LevelDBEngine(at: sealed.path)
      for (name, value) in rows where !name.contains(".") {
        let key = try bytes(name)
        // The engine alone writes the row of reserved sequences.
        if key == CommitSequence.key || key == Metadata.dataKey(1) && isKeyRowLost { continue }
        var batch = WriteBatch()
        batch.put(key.span.bytes, value.span.bytes)
        try engine.write(&batch, synced: false)
      }
      try engine.close()
      for (name, value) in rows where name.contains(".") {
        try SystemFiles().create("\(sealed.path)/\(name)", with: value)
      }
      try SystemFiles().replace("\(sealed.path)/LARDER", with: Array("larder 3\n".utf8))
      #expect(try sealed.error(opening: nil)?.isWrongKey == true)
      try sealed.with(.key(id: "k\u{E9}y", key(3))) { try expectContents(of: $0) }
    }
  }

  private static let savedAt = Date(timeIntervalSinceReferenceDate: 789_000_000.5)

  private func expectContents(of store: Store) throws {
    let texts = try store.cache("texts", of: [String].self, coder: .json)
    let text = try #require(try texts.entry(for: "all"))
    #expect(text.value == ["Maritime History", "Schlaf \u{1F634}"])
    #expect(text.savedAt == Self.savedAt && text.age == .seconds(60))
    #expect(text.validator == "\"etag\"" && text.tags == ["genre", "list"])
    let data = try store.cache("data", of: Data.self, keyedBy: Data.self, coder: .bytes)
    #expect(try data.value(for: Data([0, 255])) == Data([1, 2, 3]))
    let large = try store.cache("large", of: [String].self, keyedBy: Int.self, coder: .json)
    #expect(try large.value(for: -7) == Array(repeating: "a large value", count: 6000))
  }

  @Test("Format 3: the script reads the fixture.")
  func scriptOfFixture() throws {
    let rows = try goldenRows()
    func row(_ key: [UInt8]) throws -> String {
      hex(try #require(rows.first { $0.name == hex(key) }).value)
    }
    let physicalKey = "all".recordKey(in: 1).bytes
    let output = try run([
      "userKey": hex([UInt8](repeating: 3, count: 32)), "row": row(Metadata.dataKey(1)),
      "cache": "texts", "physicalKey": hex(physicalKey), "record": row(physicalKey),
    ])
    let json = "[\"Maritime History\",\"Schlaf \u{1F634}\"]"
    #expect(
      output == ["payload": hex(Array(json.utf8)), "validator": hex(Array("\"etag\"".utf8))])
  }

  /// The lines of the fixture: a key in hex, or the name of a file, and the bytes.
  private func goldenRows() throws -> [(name: String, value: [UInt8])] {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/format-3.txt")
    let text = try String(contentsOf: file, encoding: .utf8)
    return try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let parts = line.split(separator: " ", omittingEmptySubsequences: false)
      try #require(parts.count == 2)
      return (String(parts[0]), try bytes(String(parts[1])))
    }
  }

  private func bytes(_ hex: String) throws -> [UInt8] {
    let digits = Array(hex)
    return try stride(from: 0, to: digits.count, by: 2).map { index in
      try #require(UInt8(String(digits[index..<(index + 2)]), radix: 16))
    }
  }

  /// What the script answers.
  private func run(_ input: [String: String]) throws -> [String: String] {
    let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "open_sealed.py")
    let process = Process()
    let (given, answer) = (Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = [script.path]
    (process.standardInput, process.standardOutput) = (given, answer)
    try process.run()
    try given.fileHandleForWriting.write(contentsOf: JSONEncoder().encode(input))
    try given.fileHandleForWriting.close()
    let output = try answer.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return try JSONDecoder().decode([String: String].self, from: output)
  }

  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
