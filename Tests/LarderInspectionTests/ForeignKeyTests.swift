import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Keys of a database that is no store are bytes, and can be searched for as they are shown.
@Suite struct ForeignKeyTests {
  /// Keys that begin like rows of a store, keys of text, and keys that a terminal must not see.
  private static let keys: [(key: [UInt8], shown: String)] = [
    ([], "0x"), ([0x00], "0x00"), ([0x10, 1, 0x75, 0x73], "0x10017573"),
    ([0x20, 1, 2, 3], "0x20010203"), ([0x00, 0x61], "0x0061"),
    (Array("_https://a.example\u{0}\u{1}key".utf8), "0x" + hex("_https://a.example\u{0}\u{1}key")),
    (Array("plain".utf8), "plain"), (Array("two words".utf8), "two words"),
    (Array("0x41".utf8), "0x30783431"), (Array("-7".utf8), "0x2d37"),
    (Array("metadata cache".utf8), "metadata cache"),
    (Array("\u{E9}t\u{E9}".utf8), "\u{E9}t\u{E9}"),
    (Array("\u{1B}[31m".utf8), "0x1b5b33316d"), ([0xFF, 0xFE], "0xfffe"),
  ]

  private static func hex(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// A database whose keys are in a log, and in a table with the first one's successors.
  private static func makeDatabase(at path: String, comparator: String) throws -> ForeignDatabase {
    var database = try ForeignDatabase(at: path, comparator: comparator, lastSequence: 50)
    try database.addTable(4, [("plain", "1"), ("z", "2")])
    try database.addLog(
      3,
      Self.keys.enumerated().map { index, entry in
        ForeignDatabase.batch(UInt64(51 + index), [(entry.key, [UInt8(index)])])
      })
    return database
  }

  private static func shownKeys(_ text: String) throws -> [String] {
    try text.split(separator: "\n").map { line in
      let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return try #require(row?["key"] as? String)
    }
  }

  @Test("Each key is shown as text or in hex by `wal` and `table`, and found by what is shown.")
  func roundTrip() throws {
    for comparator in ["leveldb.BytewiseComparator", "idb_cmp1"] {
      let places = try TemporaryDirectory()
      let database = try Self.makeDatabase(at: places.path("database"), comparator: comparator)
      for form in KeyForm.allCases {
        var style = Style(.jsonl)
        style.keys = form
        var text = ""
        for path in [database.path, "\(database.path)/000003.log"] {
          text = ""
          #expect(
            try Inspection.logs(at: path, listsEntries: true, style: style).write(to: &text)
              == .fine)
        }
        let shown = try Self.shownKeys(text)
        if form == .auto || form == .utf8 { #expect(shown == Self.keys.map(\.shown)) }
        for (index, key) in shown.enumerated() {
          var found = ""
          let status = try Inspection.find(
            key, cache: nil, isDatabaseKey: false, in: database.path, style: style
          ).write(to: &found)
          #expect(status == .fine)
          let rows = try Self.shownKeys(found)
          #expect(rows.allSatisfy { $0 == key } && !rows.isEmpty, "\(form), \(index): \(found)")
          #expect(found.contains("\"sequence\":\(51 + index),"), "\(form), \(index): \(found)")
          #expect(rows.count == (Self.keys[index].shown == "plain" ? 2 : 1))
        }
        text = ""
        #expect(
          try Inspection.table(
            at: "\(database.path)/000004.ldb", listsEntries: true, style: style
          ).write(to: &text)
            == .fine)
        for key in try Self.shownKeys(text) {
          #expect(
            try Inspection.find(
              key, cache: nil, isDatabaseKey: false, in: database.path, style: style
            ).write(to: &text)
              == .fine)
        }
      }
    }
  }

  @Test("`manifest` shows the keys of a table as they can be searched for.")
  func manifest() throws {
    let places = try TemporaryDirectory()
    let database = try Self.makeDatabase(at: places.path("database"), comparator: "idb_cmp1")
    var text = ""
    #expect(
      try Inspection.manifest(at: database.path, style: Style(.csv)).write(to: &text) == .fine)
    #expect(text.contains(",plain,z\n"), "\(text)")
  }

  @Test("A cache, a key that is missing and `ls` are refused with the reason.")
  func refused() throws {
    let places = try TemporaryDirectory()
    let database = try Self.makeDatabase(
      at: places.path("database"), comparator: "leveldb.BytewiseComparator")
    func find(_ key: String, cache: String? = nil) throws -> Outcome {
      var text = ""
      return try Inspection.find(
        key, cache: cache, isDatabaseKey: false, in: database.path, style: Style()
      ).write(to: &text)
    }
    #expect { try find("nobody") } throws: { outcome(of: $0) == .notFound }
    #expect { try find("plain", cache: "genres") } throws: { outcome(of: $0) == .usage }
    #expect { try Inspection(at: database.path, now: Specimen.now) } throws: { error in
      outcome(of: error) == .unsupported && "\(error)".contains("import --kind leveldb")
    }
  }

  @Test("Of two batches with one sequence, `find` shows the later one as current.")
  func repeatedSequence() throws {
    let places = try TemporaryDirectory()
    let database = try ForeignDatabase(at: places.path("database"))
    try database.addLog(
      3, [ForeignDatabase.put(7, "k", "old"), ForeignDatabase.put(7, "k", "newer")])
    var text = ""
    #expect(
      try Inspection.find(
        "k", cache: nil, isDatabaseKey: false, in: database.path, style: Style(.csv)
      ).write(to: &text)
        == .fine)
    let rows = text.split(separator: "\n")
    #expect(rows.count == 3 && rows[1].hasPrefix("current,7,") && rows[1].hasSuffix(",put,5,k"))
    #expect(rows.last?.hasPrefix("replaced,7,") == true && rows.last?.hasSuffix(",put,3,k") == true)
  }

  @Test("Blocks that LevelDB does not read are named, and are not damage.")
  func compression() throws {
    let places = try TemporaryDirectory()
    var database = try ForeignDatabase(at: places.path("database"))
    try database.addTable(4, [("a", "1")], compression: 4)
    try database.addLog(3, [ForeignDatabase.put(9, "b", "2")])
    var text = ""
    #expect(
      try Inspection.table(
        at: "\(database.path)/000004.ldb", listsEntries: false, style: Style()
      ).write(to: &text)
        == .unsupported)
    #expect(text.contains("not supported: zlib-compressed blocks"), "\(text)")
    func find(_ key: String) throws -> Outcome {
      var text = ""
      return try Inspection.find(
        key, cache: nil, isDatabaseKey: false, in: database.path, style: Style()
      ).write(to: &text)
    }
    #expect { try find("a") } throws: { outcome(of: $0) == .unsupported }
    #expect(try find("b") == .fine, "it is not in the block's range")
  }
}
