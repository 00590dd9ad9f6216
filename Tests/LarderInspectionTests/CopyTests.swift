import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import LarderTesting
import Testing

/// `backup`, `restore`, `compact` and `diff`.
@Suite struct CopyTests {
  private static func differences(
    _ first: Inspection, _ second: Inspection, _ format: ReportFormat = .csv
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try first.differences(
      from: second, inCache: nil, style: Style(format)
    ).write(to: &text)
    return (text, status)
  }

  private static func inspect(_ path: String) throws -> Inspection {
    try Inspection(at: path, now: Specimen.now)
  }

  /// The names, sizes, inodes and dates of the files in a directory.
  private static func files(in path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted().map { name in
      var status = stat()
      #expect(stat("\(path)/\(name)", &status) == 0)
      return "\(name) \(status.st_size) \(status.st_ino) \(status.st_mtim)"
    }
  }

  @Test(
    "A backup of a store that another process has open is restored as the same store.",
    arguments: [nil, 1] as [Int?])
  func backup(separatedValueBytes: Int?) throws {
    let specimen = try Specimen(separatedValueBytes: separatedValueBytes)
    let places = try TemporaryDirectory()
    let (backup, restored) = (places.path("backup"), places.path("restored"))
    // Not closed, and so with a guard file and rows in the log.
    let open = try Specimen.open(specimen.path, separatedValueBytes: separatedValueBytes)
    try open.cache("late", of: String.self).save("late", for: "k")
    let before = try Self.files(in: specimen.path)
    var text = ""
    #expect(try specimen.inspect().backup(to: backup, style: Style()).write(to: &text) == .fine)
    #expect(text.contains("copied to \(backup), "))
    #expect(try Self.files(in: specimen.path) == before)
    #expect(try Inspection.restore(backup, to: restored, style: Style()).write(to: &text) == .fine)
    try open.close()

    let same = try Self.differences(specimen.inspect(), Self.inspect(restored))
    #expect(same.text == "difference,cache,key\n" && same.status == .fine)
    #expect(try Self.differences(specimen.inspect(), Self.inspect(backup)).status == .fine)
    let store = try Specimen.open(restored)
    #expect(try store.cache("late", of: String.self).value(for: "k") == "late")
    try store.close()

    #expect(throws: InspectionError.self, "the target is not empty") {
      try specimen.inspect().backup(to: restored, style: Style()).write(to: &text)
    }
    let after = try Self.files(in: specimen.path)
    for place in ["b", "./b/", "../store/b"] {
      #expect(throws: InspectionError.self, "the target is in the store") {
        let target = "\(specimen.path)/\(place)"
        return try specimen.inspect().backup(to: target, style: Style()).write(to: &text)
      }
    }
    #expect(try Self.files(in: specimen.path) == after)
    #expect(throws: InspectionError.self, "a backup of a backup") {
      try Self.inspect(backup).backup(to: places.path("other"), style: Style()).write(to: &text)
    }
    #expect(throws: InspectionError.self, "no backup") {
      try Inspection.restore(specimen.path, to: places.path("x"), style: Style()).write(to: &text)
    }
  }

  @Test("No backup is made of a store whose metadata is damaged.")
  func damagedSource() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.flipByte(from: [0x00], ending: "cache/genres") }
    let places = try TemporaryDirectory()
    var text = ""
    let inspection = try Self.inspect(specimen.path)
    #expect {
      try inspection.backup(to: places.path("backup"), style: Style()).write(to: &text)
    } throws: {
      ($0 as? InspectionError)?.status == .damaged
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: places.path) == [])
  }

  @Test("`diff` names the entries that differ, and why.")
  func differences() throws {
    let two = try Specimen()
    let places = try TemporaryDirectory()
    // Not a second specimen: JSON may have its members in another order there.
    try FileManager.default.copyItem(atPath: two.path, toPath: places.path("one"))
    let one = try Self.inspect(places.path("one"))
    #expect(try Self.differences(one, two.inspect()).status == .fine)

    let store = try Specimen.open(two.path)
    let genres = try store.cache(
      "genres", of: Specimen.Title.self, lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)),
      coder: .json)
    try genres.remove("stale")
    try genres.save(Specimen.Title(name: "new"), for: "new")
    // The same value, at another date.
    try genres.save(Specimen.Title(name: "fresh"), for: "fresh")
    try store.cache("more", of: Int.self, keyedBy: Int.self).save(1, for: 5)
    try store.close()
    let (text, status) = try Self.differences(one, two.inspect())
    #expect(status == .different)
    #expect(
      text == """
        difference,cache,key
        different,genres,fresh
        only in the second,genres,new
        only in the first,genres,stale
        only in the second,more,5

        """)
    let json = try Self.differences(two.inspect(), one, .jsonl).text
    #expect(
      json.contains("{\"difference\":\"only in the first\",\"cache\":\"more\",\"key\":\"5\"}"))
    try two.withEngine { try $0.flipByte(from: [0x10], ending: "expired") }
    let damaged = try Self.differences(one, two.inspect())
    #expect(damaged.status == .damaged && damaged.text.contains("damaged,genres,expired\n"))
  }

  @Test("Entries with and without segments and compression are equal.")
  func stored() throws {
    let directory = try TemporaryDirectory()
    let list = (0..<500).map { "item \($0)" }
    for (name, isCompressed) in [("a", true), ("b", false)] {
      var options = Store.Options()
      options.clock = ManualClock(Specimen.now)
      options.compression = isCompressed
      options.advanced.separatedValueBytes = isCompressed ? 100 : nil
      let store = try Store(at: URL(filePath: directory.path(name)), options: options)
      try store.cache("lists", of: [String].self).save(list, for: "k", tags: ["t"])
      try store.close()
    }
    let (a, b) = (
      try Self.inspect(directory.path("a")), try Self.inspect(directory.path("b"))
    )
    #expect(try Self.differences(a, b).status == .fine)
  }

  @Test("Entries that never expire differ by a bit of their date alone.")
  func dates() throws {
    let directory = try TemporaryDirectory()
    let date = Specimen.now.timeIntervalSinceReferenceDate
    for (name, date) in [("a", date), ("b", date.nextUp)] {
      let clock = ManualClock(Date(timeIntervalSinceReferenceDate: date))
      let store = try Specimen.open(directory.path(name), clock)
      try store.cache("numbers", of: Int.self, lifetime: .unlimited).save(1, for: "k")
      try store.close()
    }
    let (a, b) = (try Self.inspect(directory.path("a")), try Self.inspect(directory.path("b")))
    let (text, status) = try Self.differences(a, b)
    #expect(text == "difference,cache,key\ndifferent,numbers,k\n" && status == .different)
  }

  @Test("`repair` copies what can be read, names what is lost, and leaves the original alone.")
  func repair() throws {
    let specimen = try Specimen()
    let places = try TemporaryDirectory()
    var text = ""
    #expect(
      try Inspection.repair(specimen.path, to: places.path("whole"), style: Style()).write(
        to: &text)
        == .fine)
    #expect(text.contains("lost     nothing\n") && text.contains("      5  genres\n"), "\(text)")
    let whole = try Self.inspect(places.path("whole"))
    #expect(try Self.differences(specimen.inspect(), whole).status == .fine)

    try specimen.withEngine { try $0.flipByte(from: [0x10], ending: "stale") }
    try specimen.withEngine { try $0.flipByte(from: [0x00], ending: "cache/lists") }
    let before = try Self.files(in: specimen.path)
    text = ""
    let (path, output) = (specimen.path, places.path("repaired"))
    #expect(try Inspection.repair(path, to: output, style: Style()).write(to: &text) == .damaged)
    #expect(text.contains("\nthe entry stale of cache genres is lost\n"), "\(text)")
    #expect(text.contains("\nthe registration of cache lists is lost\n"))
    #expect(text.contains("\n2 entries have no cache registration: they are in caches called "))
    #expect(text.contains("      2  recovered-2\n"), "\(text)")
    let changed = Set(try Self.files(in: specimen.path)).symmetricDifference(before)
    // Its lock was held, so that no process opens the store meanwhile.
    #expect(changed.allSatisfy { $0.hasPrefix("LARDER.lock 0 ") }, "\(changed)")
    let store = try Specimen.open(output)
    #expect(
      try store.cache(
        "users", of: Specimen.Title.self, keyedBy: UUID.self,
        lifetime: .unlimited, schema: Schema(version: 3), coder: .json
      ).count() == 1)
    try store.close()
    #expect {
      try Inspection.repair(path, to: output, style: Style()).write(to: &text)
    } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
    var redacted = Style()
    redacted.isRedacted = true
    text = ""
    _ = try Inspection.repair(path, to: places.path("r"), style: redacted).write(to: &text)
    #expect(!text.contains("stale"))
  }

  @Test("`repair` rebuilds a store without a MANIFEST, and lists what is doubtful.")
  func rebuild() throws {
    let specimen = try Specimen()
    let places = try TemporaryDirectory()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    let files = SystemFiles()
    let table = try #require(
      try files.names(in: specimen.path).first { $0.hasSuffix(".ldb") })
    let bytes = try files.read("\(specimen.path)/\(table)", limit: nil)
    let store = try Specimen.open(specimen.path)
    let genres = try store.cache(
      "genres", of: Specimen.Title.self,
      lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)), coder: .json)
    try genres.remove("stale")
    try store.close()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    // A compaction has dropped the removal, and its old table was not deleted.
    try files.create("\(specimen.path)/\(table)", with: bytes)
    for name in try files.names(in: specimen.path) where name.hasPrefix("MANIFEST-") {
      try files.remove("\(specimen.path)/\(name)")
    }

    for (name, keepsDoubtful, count) in [("strict", false, 4), ("lenient", true, 5)] {
      var text = ""
      let outcome = try Inspection.repair(
        specimen.path, to: places.path(name), keepsDoubtful: keepsDoubtful, style: Style()
      ).write(to: &text)
      #expect(outcome == .damaged)
      #expect(text.contains("no intact MANIFEST lists the tables"), "\(text)")
      #expect(text.contains("cache genres, stale\n"), "\(text)")
      #expect(text.contains(keepsDoubtful ? "doubtful, copied" : "left out; --doubtful"))
      #expect(text.contains("      \(count)  genres\n"), "\(text)")
      #expect(try Self.inspect(places.path(name)).listReport().status == .fine)
    }
    var redacted = Style(.json)
    redacted.isRedacted = true
    var text = ""
    _ = try Inspection.repair(specimen.path, to: places.path("r"), style: redacted).write(to: &text)
    #expect(text.contains("\"isRebuilt\": true") || text.contains("\"isRebuilt\":true"))
    #expect(!text.contains("stale") && !text.contains("\"doubtful\":[]"))
  }

  @Test("`repair` names a log that is damaged in the middle, and keeps what follows.")
  func holeInLog() throws {
    let specimen = try Specimen()
    let places = try TemporaryDirectory()
    let log = try #require(
      try SystemFiles().names(in: specimen.path).first { $0.hasSuffix(".log") })
    var bytes = try SystemFiles().read("\(specimen.path)/\(log)", limit: nil)
    bytes[bytes.count / 2] ^= 1
    try SystemFiles().replace("\(specimen.path)/\(log)", with: bytes)
    var text = ""
    let outcome = try Inspection.repair(
      specimen.path, to: places.path("new"), style: Style()
    ).write(to: &text)
    #expect(outcome == .damaged)
    #expect(text.contains("\n\(log) is damaged from byte "), "\(text)")
    // The last writes are those of the last cache.
    #expect(text.contains("  blobs\n"), "\(text)")
  }

  @Test("`compact` makes a store smaller that was overwritten, and keeps its entries.")
  func compact() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let store = try Specimen.open(specimen.path, separatedValueBytes: 1)
    let cache = try store.cache("large", of: [UInt8].self, coder: .bytes)
    for step in 0..<300 {
      try cache.save([UInt8](repeating: UInt8(step % 200), count: 10_000), for: "\(step % 3)")
    }
    var text = ""
    #expect {
      try Inspection.compact(specimen.path, style: Style()).write(to: &text)
    } throws: {
      ($0 as? InspectionError)?.status == .unavailable
    }
    try store.close()
    let places = try TemporaryDirectory()
    _ = try specimen.inspect().backup(to: places.path("before"), style: Style()).write(to: &text)
    text = ""
    #expect(try Inspection.compact(specimen.path, style: Style(.jsonl)).write(to: &text) == .fine)
    let sizes = text.split(separator: ",").suffix(2).map { Int($0.filter(\.isNumber)) ?? 0 }
    #expect(sizes[0] > 3_000_000 && sizes[1] < 200_000, "\(text)")
    let before = try Self.inspect(places.path("before"))
    #expect(try Self.differences(before, specimen.inspect()).status == .fine)
  }
}
