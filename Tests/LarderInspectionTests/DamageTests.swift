import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// Damage is reported, and everything else is shown.
@Suite struct DamageTests {
  /// A store whose records fill many blocks of a table.
  private func largeSpecimen(records: Int = 300) throws -> Specimen {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("large", of: [UInt8].self, coder: .bytes)
    var random = SplitMix64(seed: 1)
    for index in 0..<records { try cache.save(random.bytes(400), for: "key\(1000 + index)") }
    try store.close()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    return specimen
  }

  private func table(of specimen: Specimen) throws -> String {
    try #require(try Damage.files(in: specimen.path, endingIn: ".ldb").first)
  }

  @Test(
    "An unreadable block is one row, and all other records are shown.", arguments: [false, true])
  func unreadableBlock(isReversed: Bool) throws {
    let specimen = try largeSpecimen()
    try Damage.flipByte(at: 60_000, of: try table(of: specimen))
    var selection = Selection()
    selection.cache = "large"
    selection.isReversed = isReversed
    let inspection = try specimen.inspect()

    let (text, status) = try inspection.listReport(selection)
    let shown = text.split(separator: "\n").filter { $0.contains(" key") }.count

    #expect(status == .damaged)
    #expect(text.split(separator: "\n").filter { $0.hasPrefix("damaged") }.count == 1)
    #expect((270..<300).contains(shown), "\(shown)")
    #expect(!text.contains(inspection.snapshot.path))
    #expect(try inspection.getReport("key1299").status == .fine)
  }

  @Test("A record in an unreadable block is damaged, not missing.")
  func unreadableRecord() throws {
    let specimen = try largeSpecimen()
    try Damage.flipByte(at: 60_000, of: try table(of: specimen))
    let inspection = try specimen.inspect()

    let lost = (1000..<1300).filter { index in
      do {
        return try inspection.getReport("key\(index)").status != .fine
      } catch {
        #expect(outcome(of: error) == .damaged)
        return true
      }
    }

    #expect((1..<30).contains(lost.count))
  }

  @Test("Errors name the store and not its snapshot.")
  func errorPaths() throws {
    let specimen = try largeSpecimen(records: 6000)
    let inspection = try specimen.inspect()
    for table in try Damage.files(in: inspection.snapshot.path, endingIn: ".ldb") {
      try FileManager.default.removeItem(atPath: table)
    }

    #expect {
      try inspection.listReport()
    } throws: { error in
      "\(error)".contains(specimen.path) && outcome(of: error) == .io
        && !"\(error)".contains(inspection.snapshot.path)
    }
  }

  @Test("A store with unreadable metadata can still be listed.")
  func metadataBlock() throws {
    let specimen = try largeSpecimen()
    // The first block has the metadata and the engine's own row.
    try Damage.flipByte(at: 20, of: try table(of: specimen))
    let inspection = try specimen.inspect()

    #expect(try inspection.infoReport().status == .damaged)
    let (text, status) = try inspection.listReport()
    #expect(status == .damaged)
    #expect(text.contains("#5"))
    #expect(text.split(separator: "\n").count > 250)
  }

  @Test("A damaged registration hides only the cache's name.")
  func registration() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.flipByte(from: Metadata.cachePrefix, ending: "lists") }
    let inspection = try specimen.inspect()

    let (text, status) = try inspection.infoReport()
    #expect(status == .damaged)
    #expect(text.contains("damaged  the registration of cache lists is damaged"))
    let keys = try inspection.keys()
    #expect(keys.filter { $0.cache == "#2" }.count == 2)
    for (cache, key) in keys where cache == "#2" {
      #expect(try inspection.getReport(key).status == .fine)
    }
    #expect { try inspection.getReport("42") } throws: { outcome(of: $0) == .damaged }
  }

  @Test("A damaged format marker is reported, and the store is read.")
  func marker() throws {
    let specimen = try Specimen()
    try Data("mouse".utf8).write(to: URL(filePath: specimen.path + "/LARDER"))
    let inspection = try specimen.inspect()

    #expect(try inspection.infoReport().status == .damaged)
    #expect(try inspection.listReport().status == .damaged)
    #expect(try inspection.getReport("fresh").status == .fine)
  }

  @Test("A store that cannot be opened is damaged and not changed.")
  func unopenable() throws {
    for name in ["MANIFEST", "CURRENT", "ldb"] {
      let specimen = try largeSpecimen()
      let file = try #require(
        try FileManager.default.contentsOfDirectory(atPath: specimen.path)
          .first { $0.contains(name) })
      if name == "MANIFEST" {
        try Damage.flipByte(at: 30, of: "\(specimen.path)/\(file)")
      } else if name == "CURRENT" {
        try Data("x".utf8).write(to: URL(filePath: "\(specimen.path)/\(file)"))
      } else {
        try FileManager.default.removeItem(atPath: "\(specimen.path)/\(file)")
      }
      let before = try FileFacts.all(in: specimen.path)

      #expect { try specimen.inspect() } throws: { outcome(of: $0) == .damaged }
      #expect(try FileFacts.all(in: specimen.path) == before)
    }
  }
}

/// The parser of LevelDB's MANIFEST finds all tables, and never traps.
@Suite struct ManifestTests {
  @Test("The MANIFEST lists the tables in the directory.")
  func tables() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    let path = try #require(
      try Damage.files(in: specimen.path, endingIn: "").first {
        $0.contains("MANIFEST")
      })
    let bytes = Array(try Data(contentsOf: URL(filePath: path)))
    let table = try #require(try Damage.files(in: specimen.path, endingIn: ".ldb").last)

    let manifest = try #require(Manifest(bytes))

    #expect(manifest.tables.values.map(\.bytes) == [try FileFacts(of: table).bytes])
    #expect(table.hasSuffix("\(try #require(manifest.tables.keys.first)).ldb"))
  }

  @Test("Arbitrary bytes are read without a trap.", arguments: [1, 2] as [UInt64])
  func arbitraryBytes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let specimen = try Specimen()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    let path = try #require(
      try Damage.files(in: specimen.path, endingIn: "").first {
        $0.contains("MANIFEST")
      })
    let bytes = Array(try Data(contentsOf: URL(filePath: path)))

    for count in 0...bytes.count { _ = Manifest(Array(bytes.prefix(count))) }
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (random.next() % 8))
      // A length that points past the end looks like a truncated record.
      if let manifest = Manifest(damaged) { #expect(manifest.tables.count <= 1) }
    }
    for count in 0..<100 { _ = Manifest(random.bytes(count * 10)) }
  }
}
