import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// `import --kind leveldb` takes everything that LevelDB reads, and says what it leaves out.
@Suite struct ForeignImportTests {
  private typealias Database = ForeignDatabase

  /// Imports a database, or any source, into a store that is then read.
  private static func run(
    _ path: String, skipping: Bool = false
  ) throws -> (entries: [String: String], status: Outcome, messages: [String], report: String) {
    let places = try TemporaryDirectory()
    let (target, messages) = (places.path("imported"), Messages())
    let leftOut = LeftOut(skippingUnreadable: skipping) { messages.all.append($0) }
    var report = ""
    let status = try Inspection.importing(
      .levelDB(path, cache: NewCache(name: "old", lifetime: "unlimited", coder: "bytes")),
      to: target, leavingOut: leftOut, now: Specimen.now, style: Style(.jsonl)
    ).write(to: &report)
    let store = try Specimen.open(target)
    let cache = try store.cache(
      "old", of: [UInt8].self, keyedBy: [UInt8].self, lifetime: .unlimited, coder: .bytes)
    var entries: [String: String] = [:]
    let cursor = try cache.keys()
    while let key = try cursor.next() {
      entries[String(decoding: key, as: UTF8.self)] = String(
        decoding: try cache.value(for: key) ?? [], as: UTF8.self)
    }
    try store.close()
    return (entries, status, messages.all, report)
  }

  private final class Messages { var all: [String] = [] }

  @Test("Batches with one sequence, gaps, empty logs and zeros behind a log are read completely.")
  func everythingThatLevelDBReads() throws {
    let places = try TemporaryDirectory()
    let database = try Database(at: places.path("database"), lastSequence: 40)
    try database.addLog(
      3, [Database.put(7, "a", "old"), Database.put(7, "a", "new"), Database.put(7, "b", "1")])
    try database.addLog(5, [])
    // Zeros to the end of a block, then another batch, then zeros again.
    var log = LogWriter()
    log.add(Database.put(9, "c", "1"))
    log.addRaw(Array(repeating: 0, count: 32_768 - log.bytes.count))
    log.add(Database.put(500, "d", "1"))
    log.addRaw(Array(repeating: 0, count: 5000))
    try database.write(log.bytes, to: "000006.log")
    // In a later log the sequences begin again.
    try database.addLog(
      8, [Database.put(7, "b", "2"), Database.batch(8, [(Array("c".utf8), nil)])])
    try database.addLog(9, [], tail: Array(repeating: 0, count: 100))

    let imported = try Self.run(database.path)
    #expect(imported.entries == ["a": "new", "b": "2", "d": "1"])
    #expect(imported.status == .fine && imported.messages == [])
    #expect(imported.report.contains("\"records\":3,") && imported.report.contains("\"leftOut\":0"))

    var text = ""
    #expect(
      try Inspection.logs(at: database.path, listsEntries: false, style: Style(.csv)).write(
        to: &text)
        == .fine)
    let rows = text.split(separator: "\n")
    #expect(rows.count == 8 && rows.dropFirst().allSatisfy { $0.hasSuffix(",whole") }, "\(text)")
  }

  @Test("A database without its newest log is read, as LevelDB reads it.")
  func missingLog() throws {
    let places = try TemporaryDirectory()
    var database = try Database(at: places.path("database"), log: 9, lastSequence: 9)
    try database.addTable(4, [("a", "1"), ("b", "2")])
    let imported = try Self.run(database.path)
    #expect(imported.entries == ["a": "1", "b": "2"])
    #expect(imported.status == .fine)
    var text = ""
    #expect(try Inspection.files(in: database.path, style: Style(.csv)).write(to: &text) == .fine)
    #expect(
      try Inspection.find(
        "a", cache: nil, isDatabaseKey: false, in: database.path, style: Style(.csv)
      ).write(to: &text)
        == .fine)
  }

  @Test("The entries of thousands of small logs are imported in one go.")
  func manyLogs() throws {
    let count = isProof ? 5206 : 600
    let places = try TemporaryDirectory()
    let database = try Database(at: places.path("database"))
    for index in 0..<count {
      try database.addLog(
        UInt64(3 + index), index == 3 ? [] : [Database.put(UInt64(index / 2), "k\(index)", "v")])
    }
    let imported = try Self.run(database.path)
    #expect(imported.entries.count == count - 1)
    #expect(imported.status == .fine && imported.messages == [])
  }

  @Test("What is left out of the logs is named, the rest is imported, and the outcome is damage.")
  func leftOut() throws {
    let places = try TemporaryDirectory()
    let database = try Database(at: places.path("database"))
    func log(_ number: UInt64, changing place: Int?, droppingLast count: Int = 0) throws {
      var log = LogWriter()
      for mark in ["x", "y", "z"] { log.add(Database.put(number * 10, "\(mark)\(number)", "v")) }
      var bytes = Array(log.bytes.dropLast(count))
      if let place { bytes[place] ^= 1 }
      try database.write(bytes, to: LogSurvey.name(of: number))
    }
    try log(3, changing: nil, droppingLast: 4)
    try log(4, changing: 30)
    // A record that is too short for a batch, and a batch with fewer rows than it says.
    var malformed = Database.put(50, "no", "v")
    malformed[8] = 2
    try database.addLog(5, [Database.put(50, "x5", "v"), malformed, [1, 2, 3]])
    try database.addLog(6, [Database.put(60, "x6", "v")])

    let imported = try Self.run(database.path)
    #expect(imported.entries.keys.sorted() == ["x3", "x4", "x5", "x6", "y3", "z4"])
    #expect(imported.status == .damaged)
    #expect(imported.report.contains("\"leftOut\":4"))
    let size = 7 + 12 + 1 + 3 + 2
    #expect(
      imported.messages == [
        "left out: an incomplete write of \(size - 4) bytes in \(database.path)/000003.log "
          + "at byte \(2 * size)",
        "left out: \(size) damaged bytes in \(database.path)/000004.log at byte \(size)",
        "left out: a malformed batch of \(size) bytes in \(database.path)/000005.log "
          + "at byte \(size)",
        "left out: an incomplete write of 10 bytes in \(database.path)/000005.log "
          + "at byte \(2 * size)",
      ])
  }

  @Test("A byte of any log can be changed: each entry is imported, or a part is named.")
  func anyByte() throws {
    let places = try TemporaryDirectory()
    let database = try Database(at: places.path("database"))
    var log = LogWriter()
    for index in 0..<3 { log.add(Database.put(5, "k\(index)", "v")) }
    try database.addLog(4, [Database.put(1, "later", "v")])
    for offset in log.bytes.indices {
      for bytes in [
        log.bytes.enumerated().map { $0.offset == offset ? ~$0.element : $0.element },
        Array(log.bytes[..<offset]),
      ] {
        try database.write(bytes, to: "000003.log")
        let snapshot = try StoreSnapshot(of: database.path, named: "kvinspect-")
        let losses = try snapshot.rewriteForeignLogs()
        let engine = try snapshot.open(cause: "a test")
        let count = try engine.keys(from: []).count
        #expect(count >= 1)
        let isCutBetweenRecords = bytes.count.isMultiple(of: log.bytes.count / 3)
        #expect(
          losses.isEmpty == (bytes.count < log.bytes.count && isCutBetweenRecords),
          "\(offset): \(losses)")
        try engine.close()
      }
    }
  }

  @Test("At most 100 parts are named, and the others are counted.")
  func manyParts() throws {
    let messages = Messages()
    var leftOut = LeftOut { messages.all.append($0) }
    for index in 0..<1234 { leftOut.add("\u{1B}\(index)") }
    leftOut.end()
    #expect(messages.all.count == 101)
    #expect(messages.all[99] == "left out: \\u001b99")
    #expect(messages.all[100] == "left out: 1,134 more")
  }

  // MARK: - Errors

  /// A database with one fault, the outcome of its import, and a part of the message.
  static let faults: [(name: String, status: Outcome, message: String)] = [
    ("nothing", .unavailable, "there is no database at DIR/nothing"),
    ("a file", .unavailable, "there is no database at DIR/a file"),
    ("empty", .unavailable, "there is no database at DIR/empty"),
    ("a store", .usage, "DIR/a store is a store: write its entries with export"),
    ("no CURRENT", .damaged, "the database is damaged: DIR/no CURRENT/CURRENT is missing"),
    ("bad CURRENT", .damaged, "the database is damaged: DIR/bad CURRENT/CURRENT names no MANIFEST"),
    (
      "no MANIFEST", .damaged,
      "the database is damaged: DIR/no MANIFEST/MANIFEST-000002 is missing"
    ),
    (
      "bad MANIFEST", .damaged,
      "the database is damaged: DIR/bad MANIFEST/MANIFEST-000002 is damaged"
    ),
    (
      "sequences", .damaged,
      "the database is damaged: DIR/sequences: the sequences are out of range"
    ),
    ("no table", .damaged, "the database is damaged: DIR/no table/000004.ldb is missing"),
    ("bad table", .damaged, "the database is damaged: "),
    ("bad footer", .damaged, "the database is damaged: "),
    (
      "far footer", .damaged,
      "the database is damaged: DIR/far footer/000004.ldb is damaged: "
        + "its footer points outside the file"
    ),
    ("order", .unsupported, "DIR/order: not supported: comparator idb_cmp1"),
    (
      "zlib", .unsupported, "DIR/zlib/000004.ldb, byte 0: not supported: zlib-compressed blocks"
    ),
    (
      "raw zlib", .unsupported,
      "DIR/raw zlib/000004.ldb, byte 0: not supported: zlib-compressed blocks"
    ),
    (
      "Zstandard", .unsupported,
      "DIR/Zstandard/000004.ldb, byte 0: not supported: Zstandard-compressed blocks"
    ),
    (
      "unknown", .unsupported,
      "DIR/unknown/000004.ldb, byte 0: not supported: blocks of the unknown compression 9"
    ),
    ("long key", .usage, "a key of 100000 bytes; the limit is 65536. --skip-unreadable"),
    ("long value", .usage, "large: a payload of 33554433 bytes; the limit is 33554432."),
    ("busy target", .usage, "DIR is there already, and not an empty directory"),
  ]

  private static func make(_ name: String, in places: borrowing TemporaryDirectory) throws -> String
  {
    let path = places.path(name)
    switch name {
    case "nothing": return path
    case "a file":
      try Data().write(to: URL(filePath: path))
      return path
    case "empty":
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      return path
    case "a store":
      try LevelDBEngine(at: path).close()
      return path
    default: break
    }
    let order = name == "order" ? "idb_cmp1" : "leveldb.BytewiseComparator"
    var database = try Database(
      at: path, comparator: order, lastSequence: name == "sequences" ? .max : 9)
    let (type, head): (UInt8, [UInt8]) =
      switch name {
      case "zlib": (2, [0x78, 0x9C])
      case "raw zlib": (4, [])
      case "Zstandard": (2, [0x28, 0xB5, 0x2F, 0xFD])
      case "unknown": (9, [])
      default: (0, [])
      }
    try database.addTable(4, [("a", "1")], compression: type, head: head)
    try database.addLog(3, [Database.put(9, "b", "2")])
    switch name {
    case "no CURRENT": try database.remove("CURRENT")
    case "bad CURRENT": try database.write(Array("none\n".utf8), to: "CURRENT")
    case "no MANIFEST": try database.remove("MANIFEST-000002")
    case "bad MANIFEST":
      try Damage.flipByte(at: 20, of: "\(path)/MANIFEST-000002")
      let manifest = try Data(contentsOf: URL(filePath: "\(path)/MANIFEST-000002"))
      var edit = LogWriter()
      edit.add([9, 0])
      try (manifest + Data(edit.bytes)).write(to: URL(filePath: "\(path)/MANIFEST-000002"))
    case "no table": try database.remove("000004.ldb")
    case "bad table": try Damage.flipByte(at: 3, of: "\(path)/000004.ldb")
    case "bad footer":
      let table = try Data(contentsOf: URL(filePath: "\(path)/000004.ldb"))
      try Damage.flipByte(at: table.count - 1, of: "\(path)/000004.ldb")
    case "far footer":
      var table = [UInt8](try Data(contentsOf: URL(filePath: "\(path)/000004.ldb")))
      let footer = table.count - 48
      let far: [UInt8] = [0, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]
      table.replaceSubrange(footer..<footer + 12, with: far + far)
      try database.write(table, to: "000004.ldb")
    case "long key":
      try database.addLog(
        3, [Database.batch(9, [(Array(repeating: 0xFF, count: 100_000), [1])])])
    case "long value":
      let value = [UInt8](repeating: 7, count: (32 << 20) + 1)
      try database.addLog(3, [Database.batch(9, [(Array("large".utf8), value)])])
    default: break
    }
    return path
  }

  @Test("Each fault has its exit code and one short message with the user's path.")
  func errors() throws {
    for fault in Self.faults {
      let places = try TemporaryDirectory()
      let path = try Self.make(fault.name, in: places)
      let target = fault.name == "busy target" ? places.path : places.path("target")
      let cache = try NewCache(name: "old", lifetime: "7", coder: "bytes")
      do throws(InspectionError) {
        var report = ""
        _ = try Inspection.importing(
          .levelDB(path, cache: cache), to: target, now: Specimen.now, style: Style()
        ).write(to: &report)
        Issue.record("\(fault.name): \(report)")
      } catch {
        #expect(error.status == fault.status, "\(fault.name): \(error)")
        let message = fault.message.replacing("DIR", with: places.path)
        #expect(error.description.contains(message), "\(fault.name): \(error)")
        #expect(error.description.count < 400, "\(fault.name): \(error)")
        for word in ["kvinspect-", "corrupt(", "io(", "invalidArgument(", "incompatible("] {
          #expect(!error.description.contains(word), "\(fault.name): \(error)")
        }
      }
      #expect(fault.name == "busy target" || !FileManager.default.fileExists(atPath: target))
    }
  }

  @Test("Entries that are too large are left out and counted if that is asked for.")
  func tooLarge() throws {
    let places = try TemporaryDirectory()
    let imported = try Self.run(Self.make("long key", in: places), skipping: true)
    #expect(imported.entries == ["a": "1"])
    #expect(imported.status == .damaged && imported.messages.count == 1)
    #expect(imported.messages.allSatisfy { $0.count < 200 }, "\(imported.messages)")
  }
}
