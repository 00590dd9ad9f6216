import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// A store whose MANIFEST is lost is rebuilt from its tables and logs.
@Suite(.timeLimit(.minutes(30))) struct RebuildTests {
  /// A rebuilt specimen, and the keys of which a newer state may be lost.
  private struct Rebuilt {
    let store: Store
    let cache: Cache<String, Data>
    let doubtful: Set<String>
    let faults: [String]
    private let target: URL

    init(
      _ specimen: SalvageSpecimen, _ rule: Rebuilding = .leavingOutDoubtful, at name: String = "new"
    ) throws {
      target = specimen.directory.appendingPathExtension(name)
      let found = try Store.salvage(from: specimen.directory, to: target, rebuilding: rule)
      let report = try #require(found.rebuild)
      // After the number of the space and that of the cache comes the key.
      doubtful = Set(
        report.doubtful.filter { $0.first == KeySpace.records.rawValue }.map {
          String(decoding: $0.dropFirst(2), as: UTF8.self)
        })
      faults = report.faults
      store = try Store(at: target, options: specimen.options)
      cache = try specimen.cache(in: store)
    }
  }

  private static func path(_ specimen: SalvageSpecimen) -> String {
    specimen.directory.path(percentEncoded: false)
  }

  private static func tables(_ specimen: SalvageSpecimen) throws -> [String: [UInt8]] {
    var tables: [String: [UInt8]] = [:]
    for file in try Damage.files(in: path(specimen), endingIn: ".ldb") {
      tables[file] = try SystemFiles().read(file, limit: nil)
    }
    return tables
  }

  private static func loseManifest(_ specimen: SalvageSpecimen) throws {
    for name in try SystemFiles().names(in: path(specimen))
    where name == "CURRENT" || name.hasPrefix("MANIFEST-") {
      try SystemFiles().remove("\(path(specimen))/\(name)")
    }
  }

  @Test("The latest entries come back, and no removed one.", arguments: 0..<(isProof ? 20 : 8))
  func whole(seed: Int) throws {
    let specimen = try SalvageSpecimen(seed: UInt64(seed))
    try Self.loseManifest(specimen)
    #expect(
      throwsStoreError(where: { if case .corrupt = $0 { true } else { false } }) {
        try Store.salvage(
          from: specimen.directory, to: specimen.directory.appendingPathExtension("none"))
      })
    let rebuilt = try Rebuilt(specimen)
    let wrong = try specimen.differences(in: rebuilt.cache)
    #expect(rebuilt.doubtful.isSuperset(of: wrong), "\(wrong)")
    for key in wrong { #expect(try rebuilt.cache.value(for: key) == nil, "\(key)") }
    #expect(rebuilt.faults == [])
    try specimen.saveMore(in: rebuilt.cache)
    try rebuilt.store.close()
  }

  /// A specimen in whose directory are tables from before removals that a compaction has dropped.
  private func specimenWithOldTables(
    seed: Int
  ) throws -> (specimen: SalvageSpecimen, removed: Set<String>) {
    let specimen = try SalvageSpecimen(seed: UInt64(seed))
    let store = try Store(at: specimen.directory, options: specimen.options)
    let cache = try specimen.cache(in: store)
    // So that no compaction deletes one while they are read.
    try store.context.engine.compact(EngineRange())
    let old = try Self.tables(specimen)
    let present = specimen.expected.filter { $0.value != nil }.keys
    for _ in 0..<150 { try specimen.change(cache) }
    try store.context.engine.compact(EngineRange())
    try store.close()
    for (file, bytes) in old where try SystemFiles().kind(of: file) == nil {
      try SystemFiles().create(file, with: bytes)
    }
    try Self.loseManifest(specimen)
    return (specimen, Set(present.filter { specimen.expected[$0] == .some(nil) }))
  }

  @Test(
    "Removed entries in tables that a compaction left behind are doubtful.",
    arguments: 0..<(isProof ? 20 : 8))
  func oldTables(seed: Int) throws {
    let (specimen, removed) = try specimenWithOldTables(seed: seed)
    let strict = try Rebuilt(specimen)
    let wrong = try specimen.differences(in: strict.cache)
    #expect(strict.doubtful.isSuperset(of: wrong), "\(wrong)")
    for key in wrong { #expect(try strict.cache.value(for: key) == nil, "\(key)") }
    try strict.store.close()

    let lenient = try Rebuilt(specimen, .keepingDoubtful, at: "lenient")
    let returned = try specimen.differences(in: lenient.cache)
    #expect(!returned.isEmpty && removed.isSuperset(of: returned), "\(returned)")
    #expect(strict.doubtful == lenient.doubtful && strict.doubtful.isSuperset(of: returned))
    try lenient.store.close()
  }

  @Test(
    "With damaged tables, an entry is the latest one or missing.",
    arguments: 0..<(isProof ? 40 : 16))
  func damagedTables(seed: Int) throws {
    let specimen = try SalvageSpecimen(seed: UInt64(seed))
    try Self.loseManifest(specimen)
    guard try specimen.damage(.table) else { return }
    let rebuilt = try Rebuilt(specimen)
    let wrong = try specimen.differences(in: rebuilt.cache)
    for key in wrong { #expect(try rebuilt.cache.value(for: key) == nil, "\(key)") }
    #expect(wrong.isEmpty || !rebuilt.faults.isEmpty)
    try specimen.saveMore(in: rebuilt.cache)
    try rebuilt.store.close()
  }

  @Test("A table that was being written is no loss.", arguments: 0..<10)
  func unfinishedTable(seed: Int) throws {
    let specimen = try SalvageSpecimen(seed: UInt64(seed))
    let tables = try Self.tables(specimen)
    let largest = try #require(tables.values.max { $0.count < $1.count })
    // As a compaction that has written a part of a table when the process ends.
    try SystemFiles().create("\(Self.path(specimen))/000998.ldb", with: Array(largest.dropLast(60)))
    try Self.loseManifest(specimen)
    let rebuilt = try Rebuilt(specimen)
    #expect(rebuilt.faults == [])
    #expect(try specimen.differences(in: rebuilt.cache).allSatisfy(rebuilt.doubtful.contains))
    try rebuilt.store.close()

    // The same table is a loss if its rows are nowhere else.
    for (file, bytes) in tables where bytes == largest { try SystemFiles().remove(file) }
    let lost = try Rebuilt(specimen, at: "lost")
    #expect(lost.faults == ["000998.ldb: the end of the table is missing"])
    #expect(
      try specimen.differences(in: lost.cache).allSatisfy { try lost.cache.value(for: $0) == nil })
    try lost.store.close()
  }

  @Test("Large values in segments come back.")
  func segments() throws {
    let temporary = try TemporaryDirectory()
    let directory = URL(filePath: temporary.path("store"))
    var random = SplitMix64(seed: 3)
    let value = random.bytes(100_000)
    let store = try Store(at: directory)
    let cache = try store.cache("images", of: [UInt8].self, coder: .bytes)
    try cache.save(value, for: "a")
    try cache.save([1], for: "b")
    try store.close()
    try SystemFiles().remove(temporary.path("store/CURRENT"))
    for name in try SystemFiles().names(in: temporary.path("store"))
    where name.hasPrefix("MANIFEST-") {
      try SystemFiles().remove(temporary.path("store/\(name)"))
    }
    let target = URL(filePath: temporary.path("new"))
    let found = try Store.salvage(from: directory, to: target, rebuilding: .leavingOutDoubtful)
    #expect(found.rebuild?.doubtful == [] && found.report.isComplete)
    let rebuilt = try Store(at: target)
    let again = try rebuilt.cache("images", of: [UInt8].self, coder: .bytes)
    #expect(try again.value(for: "a") == value && again.value(for: "b") == [1])
    try rebuilt.close()
  }
}
