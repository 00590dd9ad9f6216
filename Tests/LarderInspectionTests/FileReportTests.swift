import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// `files`, `wal`, `manifest`, `table` and `find` read LevelDB's files without opening a database.
@Suite struct FileReportTests {
  /// A report and its outcome, which is that of the error if there is one.
  private typealias Report = (text: String, outcome: Outcome)

  private static func report(
    _ command: (inout String) throws(InspectionError) -> Outcome
  ) -> Report {
    var text = ""
    do throws(InspectionError) {
      let outcome = try command(&text)
      return (text, outcome)
    } catch {
      return (error.description, error.status)
    }
  }

  private static func files(_ path: String, _ style: Style = Style()) -> Report {
    report { text throws(InspectionError) in
      try Inspection.files(in: path, style: style).write(to: &text)
    }
  }

  private static func logs(_ path: String, entries: Bool = false, _ style: Style = Style())
    -> Report
  {
    report { text throws(InspectionError) in
      try Inspection.logs(at: path, listsEntries: entries, style: style).write(to: &text)
    }
  }

  private static func manifest(_ path: String, _ style: Style = Style()) -> Report {
    report { text throws(InspectionError) in
      try Inspection.manifest(at: path, style: style).write(to: &text)
    }
  }

  private static func table(
    _ path: String, entries: Bool = false, _ style: Style = Style()
  ) -> Report {
    report { text throws(InspectionError) in
      try Inspection.table(at: path, listsEntries: entries, style: style).write(to: &text)
    }
  }

  private static func find(
    _ key: String, in path: String, isDatabaseKey: Bool = false, _ style: Style = Style()
  ) -> Report {
    report { text throws(InspectionError) in
      try Inspection.find(
        key, cache: nil, isDatabaseKey: isDatabaseKey, in: path, style: style
      ).write(to: &text)
    }
  }

  /// The only file in a directory whose name has this ending.
  private static func file(in path: String, ending end: String) throws -> String {
    let names = try SystemFiles().names(in: path).filter { $0.hasSuffix(end) }
    return "\(path)/\(try #require(names.count == 1 ? names.first : nil))"
  }

  /// The specimen, with all rows in one table, and then two removals in a log.
  private static func specimen() throws -> Specimen {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    let store = try Specimen.open(specimen.path)
    let genres = try store.cache(
      "genres", of: Specimen.Title.self,
      lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)), coder: .json)
    try genres.remove("stale")
    try genres.remove("expired")
    try store.close()
    return specimen
  }

  /// The rows of a report in JSON.
  private static func rows(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  // MARK: - files

  @Test("`files` says of each file what it is, and whether it is live.")
  func listOfFiles() throws {
    let specimen = try Self.specimen()
    try Data("left over".utf8).write(to: URL(filePath: "\(specimen.path)/000001.ldb"))
    let report = Self.files(specimen.path, Style(.jsonl))
    #expect(report.outcome == .fine)
    let rows = try Self.rows(report.text)
    func states(of kind: String) -> [String] {
      rows.filter { $0["kind"] as? String == kind }.compactMap { $0["state"] as? String }.sorted()
    }
    #expect(states(of: "table") == ["live", "not live"])
    #expect(states(of: "log") == ["live"])
    #expect(states(of: "MANIFEST") == ["live"])
    #expect(states(of: "marks a store") == ["live"])
    #expect(rows.count == (try SystemFiles().names(in: specimen.path)).count)
    #expect(rows.contains { $0["level"] as? Int ?? 0 > 0 })
  }

  @Test("`files` names a live file that is missing, and says so if nothing tells what is live.")
  func missingFiles() throws {
    let specimen = try Self.specimen()
    let table = try Self.file(in: specimen.path, ending: ".ldb")
    try SystemFiles().remove(table)
    let missing = Self.files(specimen.path, Style(.csv))
    #expect(missing.outcome == .damaged)
    #expect(missing.text.contains("missing,table,"))
    #expect(missing.text.contains(URL(filePath: table).lastPathComponent))

    try SystemFiles().remove("\(specimen.path)/CURRENT")
    let unknown = Self.files(specimen.path, Style(.csv))
    #expect(unknown.outcome == .damaged)
    #expect(unknown.text.contains("unknown,log,"))
    #expect(Self.manifest(specimen.path).outcome == .damaged)
  }

  @Test("A directory without a database, and a missing file, are refused.")
  func nothing() throws {
    let directory = try TemporaryDirectory()
    for path in [directory.path, directory.path("none")] {
      #expect(Self.files(path).outcome == .unavailable)
      #expect(Self.logs(path).outcome == .unavailable)
      #expect(Self.manifest(path).outcome == .unavailable)
    }
    #expect(Self.table(directory.path).outcome == .unavailable)
    #expect(Self.table(directory.path("none")).outcome == .unavailable)
    let specimen = try Specimen()
    #expect(Self.table(specimen.path).outcome == .usage)
  }

  // MARK: - wal, manifest, table

  @Test("`wal` counts the puts and removals of each batch, and lists them with their sequences.")
  func batches() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"))
    try engine.put(Array("a".utf8), [1, 2, 3])
    var batch = WriteBatch()
    batch.put([UInt8(0x62)].span.bytes, [UInt8(4)].span.bytes)
    batch.remove([UInt8(0x61)].span.bytes)
    try engine.write(&batch, synced: false)
    try engine.close()
    let path = directory.path("store")
    let log = URL(filePath: try Self.file(in: path, ending: ".log")).lastPathComponent
    let batches = Self.logs(path, Style(.csv))
    #expect(batches.outcome == .fine)
    #expect(
      batches.text == """
        log,offset,sequence,puts,removals,bytes,state
        \(log),0,1,2,0,39,whole
        \(log),46,3,1,1,20,whole

        """)
    #expect(
      Self.logs(path, entries: true, Style(.csv)).text == """
        log,offset,sequence,change,valueBytes,key
        \(log),0,1,put,3,0x61
        \(log),0,2,put,8,metadata sequence
        \(log),46,3,put,1,0x62
        \(log),46,4,removal,,0x61

        """)
  }

  @Test("`manifest` lists the tables that became live, with their keys.")
  func edits() throws {
    let specimen = try Self.specimen()
    let rows = try Self.rows(Self.manifest(specimen.path, Style(.jsonl)).text)
    let added = try #require(rows.last { $0["field"] as? String == "table added" })
    let table = try Self.file(in: specimen.path, ending: ".ldb")
    #expect(added["bytes"] as? Int == (try SystemFiles().byteCount(of: table)))
    #expect((added["firstKey"] as? String)?.hasPrefix("metadata ") == true)
    #expect((added["lastKey"] as? String)?.hasPrefix("notes #") == true)
    #expect(rows.first?["value"] as? String == "leveldb.BytewiseComparator")
  }

  @Test("`table` lists blocks, and with `--entries` the keys in them.")
  func blocks() throws {
    let specimen = try Self.specimen()
    let path = try Self.file(in: specimen.path, ending: ".ldb")
    let blocks = Self.table(path)
    #expect(blocks.outcome == .fine)
    #expect(blocks.text.contains("filter     leveldb.BuiltinBloomFilter2"))
    let rows = try Self.rows(Self.table(path, entries: true, Style(.jsonl)).text)
    let keys = rows.compactMap { $0["key"] as? String }
    #expect(keys.contains("record #1 fresh"))
    #expect(keys.count == rows.count)
    let counts = try Self.rows(Self.table(path, Style(.jsonl)).text)
    #expect(counts.reduce(0) { $0 + ($1["entries"] as? Int ?? 0) } == rows.count)
  }

  @Test("One changed byte in a log, a MANIFEST or a table is named with its file and place.")
  func damage() throws {
    let specimen = try Self.specimen()
    // Damage at the end of a log or MANIFEST looks like a write that was cut off.
    let cases: [(file: String, offsets: [Int], report: (String) -> Report)] = [
      (try Self.file(in: specimen.path, ending: ".log"), [7, 20], { Self.logs($0) }),
      (try Self.manifestPath(in: specimen.path), [3, 9], { Self.manifest($0) }),
      (
        try Self.file(in: specimen.path, ending: ".ldb"), [0, 100, -60, -48, -46, -1],
        { Self.table($0) }
      ),
    ]
    for (path, offsets, report) in cases {
      let intact = try SystemFiles().read(path, limit: nil)
      #expect(report(path).outcome == .fine, "\(path)")
      for offset in offsets {
        var bytes = intact
        bytes[offset < 0 ? bytes.count + offset : offset] ^= 0x40
        try SystemFiles().replace(path, with: bytes)
        let found = report(path)
        #expect(found.outcome == .damaged, "\(path), \(offset)")
        let name = URL(filePath: path).lastPathComponent
        #expect(found.text.contains(name), "\(found.text)")
        #expect(
          ["damaged", "checksum", "does not end", "not in the file"].contains {
            found.text.contains($0)
          }, "\(offset): \(found.text)")
      }
      try SystemFiles().replace(path, with: intact)
    }
  }

  private static func manifestPath(in path: String) throws -> String {
    let names = try SystemFiles().names(in: path).filter { $0.hasPrefix("MANIFEST-") }
    return "\(path)/\(try #require(names.first))"
  }

  @Test("Each byte of each file can be changed, cut and doubled without a crash.")
  func anyByte() throws {
    let specimen = try Self.specimen()
    let copy = try TemporaryDirectory()
    for path in [
      try Self.file(in: specimen.path, ending: ".log"), try Self.manifestPath(in: specimen.path),
      try Self.file(in: specimen.path, ending: ".ldb"),
    ] {
      let intact = try SystemFiles().read(path, limit: nil)
      let name = copy.path(URL(filePath: path).lastPathComponent)
      for offset in intact.indices {
        var changed = intact
        changed[offset] = ~changed[offset]
        for bytes in [changed, Array(intact[..<offset]), Array(intact[..<offset]) + intact] {
          try Data(bytes).write(to: URL(filePath: name))
          let report =
            name.hasSuffix(".ldb")
            ? Self.table(name, entries: true)
            : name.hasSuffix(".log") ? Self.logs(name, entries: true) : Self.manifest(name)
          #expect([.fine, .damaged].contains(report.outcome), "\(name), \(offset)")
        }
      }
    }
  }

  // MARK: - find

  @Test("`find` lists each put and removal of a key, newest first, and which one a read finds.")
  func traces() throws {
    let specimen = try Self.specimen()
    let removed = try Self.rows(Self.find("stale", in: specimen.path, Style(.jsonl)).text)
    #expect(removed.map { $0["state"] as? String } == ["current", "replaced"])
    #expect(removed.map { $0["change"] as? String } == ["removal", "put"])
    #expect((removed[0]["file"] as? String)?.hasSuffix(".log") == true)
    #expect((removed[1]["file"] as? String)?.hasSuffix(".ldb") == true)
    #expect(removed[1]["level"] as? Int ?? 0 > 0)

    let intact = try Self.rows(Self.find("fresh", in: specimen.path, Style(.jsonl)).text)
    #expect(intact.map { $0["state"] as? String } == ["current"])
    #expect(Self.find("-7", in: specimen.path).outcome == .fine)
    #expect(Self.find("nobody", in: specimen.path).outcome == .notFound)

    // The same by the key of the database, without a MANIFEST.
    let key =
      "0x" + ([0x10, 1] + Array("fresh".utf8)).map { String($0, radix: 16).leftPadded }.joined()
    try SystemFiles().remove("\(specimen.path)/CURRENT")
    let lost = Self.find(key, in: specimen.path, isDatabaseKey: true, Style(.jsonl))
    #expect(lost.outcome == .damaged)
    #expect(try Self.rows(lost.text).map { $0["state"] as? String } == ["not live"])
    #expect(Self.find("fresh", in: specimen.path, isDatabaseKey: true).outcome == .usage)
  }

  @Test("`find` names the segment and the place of a payload.")
  func payloads() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let rows = try Self.rows(Self.find("fresh", in: specimen.path, Style(.jsonl)).text)
    #expect((rows.first?["payload"] as? String)?.hasPrefix("00000001.segment at ") == true)
    #expect(
      Self.find("fresh", in: specimen.path).text.contains("\n\npayload  00000001.segment at "))
  }

  @Test("`find` reports unreadable parts of the files, in which the key may be.")
  func unreadable() throws {
    let specimen = try Self.specimen()
    let table = try Self.file(in: specimen.path, ending: ".ldb")
    let key = "0x10016e6f626f6479"
    #expect(Self.find(key, in: specimen.path, isDatabaseKey: true).outcome == .notFound)
    var bytes = try SystemFiles().read(table, limit: nil)
    bytes[bytes.count - 1] ^= 1
    try SystemFiles().replace(table, with: bytes)
    let report = Self.find(key, in: specimen.path, isDatabaseKey: true)
    #expect(report.outcome == .damaged)
    #expect(report.text.contains(URL(filePath: table).lastPathComponent))
  }

  @Test("A key is found while tables and logs change.")
  func changingStore() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    var options = LevelDBOptions()
    options.writeBufferBytes = 64 << 10
    let engine = try LevelDBEngine(at: path, options: options)
    try engine.put(Array("anchor".utf8), [1])
    let (isEnough, hasEnded) = (Flag(), Flag())
    let writer = Thread {
      var random = SplitMix64(seed: 1)
      while !isEnough.isRaised {
        let isAnchor = random.next() % 500 == 0
        let key = isAnchor ? Array("anchor".utf8) : withUnsafeBytes(of: random.next(), Array.init)
        do {
          try engine.put(
            key, Array(repeating: UInt8(truncatingIfNeeded: random.next()), count: 900))
        } catch {
          Issue.record("\(error)")
          break
        }
      }
      hasEnded.raise()
    }
    writer.start()
    var sequences: Set<Int> = []
    for _ in 0..<1000 where sequences.count < 8 {
      let report = Self.find("0x616e63686f72", in: path, isDatabaseKey: true, Style(.jsonl))
      #expect(report.outcome == .fine, "\(report.text)")
      let row = try #require(try Self.rows(report.text).first)
      #expect(row["state"] as? String == "current")
      sequences.insert(try #require(row["sequence"] as? Int))
    }
    isEnough.raise()
    hasEnded.wait()
    try engine.close()
    #expect(sequences.count == 8, "the key did not change")
  }

  // MARK: - All of them

  @Test(
    "Tables are as wide as the terminal at most, and keys are shortened.", arguments: [80, 120])
  func widths(width: Int) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let engine = try LevelDBEngine(at: path)
    let key = Array("\u{10}\u{1}".utf8) + Array(repeating: UInt8(ascii: "k"), count: 300)
    try engine.put(key, [1])
    try engine.compact(EngineRange())
    try engine.put(key, [2])
    try engine.close()
    var style = Style()
    style.width = width
    let table = try Self.file(in: path, ending: ".ldb")
    let hex = "0x" + key.map { String($0, radix: 16).leftPadded }.joined()
    for report in [
      Self.logs(path, entries: true, style), Self.logs(path, style), Self.table(table, style),
      Self.table(table, entries: true, style), Self.files(path, style),
      Self.find(hex, in: path, isDatabaseKey: true, style),
    ] {
      #expect(report.outcome == .fine)
      for line in report.text.split(separator: "\n") where !line.hasSuffix("(files)") {
        #expect(line.count <= width || line.hasSuffix("(snapshot)"), "\(line)")
      }
    }
  }

  @Test("Redacted reports have no text of a key or value.")
  func redacted() throws {
    let specimen = try Self.specimen()
    for format in ReportFormat.allCases {
      var style = Style(format)
      style.isRedacted = true
      let reports = [
        Self.logs(specimen.path, entries: true, style), Self.manifest(specimen.path, style),
        Self.table(try Self.file(in: specimen.path, ending: ".ldb"), entries: true, style),
        Self.table(try Self.file(in: specimen.path, ending: ".ldb"), style),
        Self.find("stale", in: specimen.path, style),
      ]
      for report in reports {
        #expect(report.outcome == .fine)
        for text in ["stale", "fresh", "genres", "blobs", Specimen.secret] {
          #expect(!report.text.contains(text), "\(report.text)")
        }
      }
      #expect(!Self.find("nobody", in: specimen.path, style).text.contains("nobody"))
    }
  }

  @Test("Keys of other databases cannot control a terminal.")
  func escapes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let engine = try LevelDBEngine(at: path)
    // As in a store's metadata, record and index, and as in no store.
    for space: [UInt8] in [[0x00], [0x01], [0x10, 1], [0x20], [0x41]] {
      try engine.put(space + Array("\u{1B}]0;x\u{7}\u{202E}".utf8), [1])
    }
    try engine.compact(EngineRange())
    try engine.put(Array("\u{10}\u{1}\u{1B}[31m".utf8), [1])
    try engine.close()
    for format in ReportFormat.allCases {
      let table = try Self.file(in: path, ending: ".ldb")
      for report in [
        Self.logs(path, entries: true, Style(format)), Self.manifest(path, Style(format)),
        Self.table(table, entries: true, Style(format)), Self.table(table, Style(format)),
      ] {
        #expect(report.outcome == .fine)
        #expect(!report.text.unicodeScalars.contains { $0.value == 0x1B || $0 == "\u{202E}" })
      }
    }
  }
}

extension String {
  fileprivate var leftPadded: String { count == 1 ? "0" + self : self }
}
