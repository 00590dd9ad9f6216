import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// Reports of records with a compressed payload.
@Suite struct CompressionTests {
  private static let value = Array(repeating: "a text that repeats", count: 1000)

  /// A store with a compressed record under the key `k`.
  private static func path(in directory: borrowing TemporaryDirectory) throws -> String {
    let path = directory.path("store")
    let store = try Store(at: URL(filePath: path))
    try store.cache("texts", of: [String].self, coder: .json).save(value, for: "k")
    try store.close()
    return path
  }

  @Test("`get` shows a compressed payload as its coder wrote it, and both sizes.")
  func shown() throws {
    let directory = try TemporaryDirectory()
    let inspection = try Inspection(at: try Self.path(in: directory), now: Date())
    let payload = try inspection.payload(of: "k", cache: nil, keys: .auto).bytes
    #expect(try JSONDecoder().decode([String].self, from: Data(payload)) == Self.value)
    let (text, status) = try inspection.getReport("k")
    #expect(status == .fine)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("payload") })
    let words = line.split(separator: " ")
    #expect(words.count == 5 && words[1] == "\(payload.count)" && words[4] == "compressed")
    let stored = try #require(words.count == 5 ? Int(words[3]) : nil)
    #expect(stored < payload.count / 10)
    let json = try inspection.getReport("k", Style(.jsonl)).text
    #expect(json.contains("\"payloadBytes\":\(stored),") && json.contains("\"isCompressed\":true"))
    #expect(json.contains("\"payload\":[\"a text that repeats\","))
    var verified = ""
    #expect(try inspection.verify(style: Style()).write(to: &verified) == .fine)
  }

  @Test("`verify` and `get` report a payload that cannot be decompressed.")
  func invalid() throws {
    let directory = try TemporaryDirectory()
    let path = try Self.path(in: directory)
    let engine = try LevelDBEngine(at: path)
    let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
    #expect(try cursor.next())
    var batch = WriteBatch()
    cursor.withEntry { key, value in
      batch.put(key, stamp: Record.stamp) { buffer in
        var record = [UInt8](value)
        // The size of the payload, once decompressed.
        record[Record.headerBytes] ^= 1
        buffer.append(record)
      }
    }
    try engine.write(&batch, synced: false)
    try engine.close()
    let inspection = try Inspection(at: path, now: Date())
    let (text, status) = try inspection.getReport("k")
    #expect(status == .unsupported)
    #expect(text.contains("a compressed payload that cannot be decompressed"))
    var verified = ""
    #expect(try inspection.verify(style: Style()).write(to: &verified) == .unsupported)
    #expect(throws: InspectionError.self) {
      try inspection.payload(of: "k", cache: nil, keys: .auto)
    }
  }
}
