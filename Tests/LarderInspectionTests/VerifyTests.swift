import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// `verify` names every damaged part of a store, and reports no false faults.
@Suite struct VerifyTests {
  private func verified(
    _ specimen: Specimen, _ style: Style = Style()
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try specimen.inspect().verify(style: style).write(to: &text)
    return (text, status)
  }

  /// The cache, key and fault of each row.
  private func faults(in specimen: Specimen) throws -> [[String]] {
    try verified(specimen, Style(.csv)).text.split(separator: "\n").dropFirst().map { line in
      line.split(separator: ",", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
    }
  }

  private func log(of specimen: Specimen) throws -> String {
    try #require(try Damage.files(in: specimen.path, endingIn: ".log").last)
  }

  @Test("An intact store has no faults.")
  func intactStore() throws {
    let specimen = try Specimen()
    for isCompacted in [false, true] {
      if isCompacted { try specimen.withEngine { try $0.compact(EngineRange()) } }
      let (text, status) = try verified(specimen)
      #expect(status == .fine)
      #expect(text.contains("records   10\n") && text.contains("problems  0\n"), "\(text)")
      #expect(try faults(in: specimen).isEmpty)
      #expect(try verified(specimen, Style(.jsonl)).text.isEmpty)
    }
  }

  @Test("Each changed byte of a table is a problem that names the file and the place.")
  func tables() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    // LevelDB's opening writes the log into a table of its own.
    let name = try #require(
      try SystemFiles().names(in: specimen.path).first { $0.hasSuffix(".ldb") })
    let path = "\(specimen.path)/\(name)"
    let intact = try SystemFiles().read(path, limit: nil)
    // The rest of the footer is filler that nothing reads.
    let footer = intact.count - 48
    for offset in Array(stride(from: 0, to: footer, by: 11)) + [footer - 1, footer, footer + 47] {
      var bytes = intact
      bytes[offset] ^= 0x10
      try SystemFiles().replace(path, with: bytes)
      let found: (text: String, status: Outcome)
      do {
        found = try verified(specimen)
      } catch let error as InspectionError {
        found = (error.description, error.status)
      }
      #expect(found.status == .damaged, "\(offset)")
      #expect(found.text.contains(name), "\(offset): \(found.text)")
      #expect(found.text.contains("`kvinspect repair` copies"), "\(offset): \(found.text)")
    }
  }

  @Test("A damaged record is named.")
  func damagedRecord() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.flipByte(from: [0x10], ending: "damaged") }
    let before = try FileFacts.all(in: specimen.path)

    #expect(
      try faults(in: specimen) == [["genres", "damaged", "damaged", "its checksum does not match"]])
    #expect(try verified(specimen).status == .damaged)
    #expect(try FileFacts.all(in: specimen.path) == before)

    let text = try verified(specimen, Style(.json)).text
    let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    let rows = try #require(report?["faults"] as? [[String: Any]])
    #expect(rows.count == 1 && rows[0]["key"] as? String == "damaged")
    #expect(report?["records"] as? Int == 10)

    var style = Style(.csv)
    style.isRedacted = true
    let redacted = try verified(specimen, style).text
    #expect(redacted.contains("(7 bytes, ") && !redacted.contains("genres,damaged"))
  }

  @Test("A record of a later format is unsupported, not damaged.")
  func laterRecord() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.makeUnsupported(from: [0x10], ending: "fresh") }
    #expect(try verified(specimen).status == .unsupported)
    #expect(try faults(in: specimen).map { $0[2] } == ["unsupported"])
  }

  @Test("An expiring record that should be noted and is not is a fault.")
  func missingNote() throws {
    let specimen = try Specimen()
    try specimen.withEngine { engine in
      var batch = WriteBatch()
      for key in try engine.keys(from: [0x30]) { batch.remove(key.span.bytes) }
      try engine.write(&batch, synced: false)
    }
    let faults = try faults(in: specimen)
    #expect(faults.contains(["genres", "stale", "damaged", "it expires but has no note"]))
    #expect(faults.filter { $0[3] == "it expires but has no note" }.count == 9)
  }

  @Test("Notes of entries that were overwritten and removed are no faults.")
  func leftoverNotes() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path, ManualClock(Specimen.now + 40 * 86_400))
    let genres = try store.cache(
      "genres", of: Specimen.Title.self,
      lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)))
    try genres.save(Specimen.Title(name: "again"), for: "fresh")
    try genres.remove("stale")
    try store.close()

    let (text, status) = try verified(specimen)
    #expect(status == .fine, "\(text)")
  }

  @Test("Records that were saved since the last notes were written need none.")
  func notYetNoted() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("new", of: Int.self)
    try cache.save(1, for: "k")
    let (text, status) = try verified(specimen)
    #expect(status == .fine, "\(text)")
    try store.close()
  }

  @Test("Records saved with an earlier lifetime are noted.")
  func otherLifetime() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    _ = try store.cache("genres", of: Specimen.Title.self, lifetime: .days(200))
    try store.close()
    let (text, status) = try verified(specimen)
    #expect(status == .fine, "\(text)")
  }

  @Test("Damaged notes are a fault.")
  func damagedNotes() throws {
    let specimen = try Specimen()
    try specimen.withEngine { engine in
      let row = try #require(try engine.keys(from: [0x30]).first)
      var batch = WriteBatch()
      batch.put(row.span.bytes, [UInt8](arrayLiteral: 1).span.bytes)
      batch.put([UInt8](arrayLiteral: 0x30, 1, 2).span.bytes, [UInt8](arrayLiteral: 1).span.bytes)
      try engine.write(&batch, synced: false)
    }
    let faults = try faults(in: specimen)
    #expect(faults.map { $0[3] } == ["a row of notes is damaged", "a row of notes is damaged"])
  }

  @Test("Every kind of metadata is checked.")
  func metadata() throws {
    let specimen = try Specimen()
    try specimen.withEngine { engine in
      try engine.flipByte(from: [0x00], ending: "next-id")
      try engine.flipByte(from: [0x00], ending: "lists")
    }
    let messages = try faults(in: specimen).map { $0[3] }
    #expect(messages.contains("the metadata row next-id is damaged"))
    #expect(messages.contains("the registration of cache lists is damaged"))
  }

  @Test("The progress row of a migration is checked.")
  func migration() throws {
    let specimen = try Specimen()
    let body = """
      {"coder":1,"reached":"a2V5","report":{"current":0,"expired":1,"migrated":256,"newer":0,\
      "unreadable":0},"schemaVersion":3}
      """
    try specimen.put(Array(body.utf8), under: Metadata.migration(5))
    let (text, status) = try verified(specimen)
    #expect(status == .fine && text.contains("problems  0\n"), "\(text)")
    #expect(try specimen.inspect().infoReport().status == .fine)

    // An intact row with invalid contents.
    try specimen.put(Array("{}".utf8), under: Metadata.migration(6))
    try specimen.withEngine { try $0.flipByte(from: Metadata.migration(5), ending: "") }
    let messages = try faults(in: specimen).map { $0[3] }
    #expect(messages.count == 2)
    #expect(
      messages.allSatisfy { $0.hasPrefix("the metadata row ") && $0.hasSuffix(" is damaged") })
  }

  @Test("A damaged log is reported, and the records before the damage are shown.")
  func damagedLog() throws {
    let specimen = try Specimen()
    let log = try log(of: specimen)
    let size = try FileFacts(of: log).bytes
    try Damage.flipByte(at: size / 2, of: log)
    let before = try FileFacts.all(in: specimen.path)

    let faults = try faults(in: specimen)
    #expect(faults.count == 1 && faults[0][3].contains("\(log): damaged at byte "), "\(faults)")
    #expect(try verified(specimen).status == .damaged)
    #expect(try specimen.inspect().listReport().status == .damaged)
    #expect(try FileFacts.all(in: specimen.path) == before)
  }

  @Test("A torn log is reported and is not damage.")
  func tornLog() throws {
    let specimen = try Specimen()
    let log = try log(of: specimen)
    let bytes = try Data(contentsOf: URL(filePath: log))
    try bytes.dropLast(3).write(to: URL(filePath: log))

    let (text, status) = try verified(specimen)
    #expect(status == .fine)
    #expect(text.contains("log       \(log) is torn at byte "), "\(text)")
    // The closing wrote the last part of the log.
    #expect(text.contains("records   10\n"), "\(text)")
  }

  @Test("An unreadable block is a fault of its table, and of its cache.")
  func unreadableBlock() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("large", of: [UInt8].self, coder: .bytes)
    var random = SplitMix64(seed: 1)
    for index in 0..<300 { try cache.save(random.bytes(400), for: "key\(1000 + index)") }
    try store.close()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    let table = try #require(try Damage.files(in: specimen.path, endingIn: ".ldb").first)
    try Damage.flipByte(at: 60_000, of: table)

    #expect(try verified(specimen).status == .damaged)
    let faults = try faults(in: specimen)
    #expect(faults.map { $0[0] } == ["", "large"])
    #expect(faults.first?[3].contains("ldb, byte ") == true, "\(faults)")
  }
}
