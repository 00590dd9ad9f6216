import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderInspection

/// Numbers in files that any program may have written are not believed.
@Suite struct ClaimTests {
  @Test("Statistics with impossible counts are shown, and nothing overflows.")
  func statistics() throws {
    let specimen = try Specimen()
    var statistics = Statistics.none
    for (name, count) in [("a", Int.max), ("b", .max), ("c", .min), ("d", -1)] {
      var cache = try CacheStatistics.none
      (cache.reads.fresh, cache.reads.missing, cache.reads.memory) = (count, count, count)
      (cache.saves, cache.removals) = (count, count)
      (cache.deletions.sweeps.entries, cache.deletions.cacheBudget.entries) = (count, count)
      statistics.caches[name] = cache
    }
    let published = PublishedStatistics(statistics, at: Specimen.now, uptime: .seconds(1))
    let content = try JSONEncoder().encode(published)
    try content.write(to: URL(filePath: "\(specimen.path)/LARDER.statistics"))
    // This process counts as the one that has the store open.
    try Data("\(getpid())\n".utf8).write(to: URL(filePath: "\(specimen.path)/LARDER.lock"))
    #expect(try specimen.inspect().infoReport().text.contains("reads    "))
    var text = ""
    _ = try Inspection.doctor(
      specimen.path, now: Specimen.now, isDeep: false, style: Style()
    ).write(to: &text)
    #expect(text.contains("evict"), "\(text)")
  }

  @Test(
    "A file that is larger than any file of a store is refused, or read up to a limit.",
    arguments: ["CURRENT", "MANIFEST", ".log", "LARDER.statistics", "LARDER"])
  func largeFiles(kind: String) throws {
    let specimen = try Specimen()
    let names = try SystemFiles().names(in: specimen.path)
    let found = names.first { $0.hasPrefix(kind) && kind == "MANIFEST" || $0.hasSuffix(kind) }
    let path = "\(specimen.path)/\(found ?? kind)"
    if found == nil { try SystemFiles().create(path, with: [1]) }
    // The file is sparse: it takes no room.
    try #require(truncate(path, 4 << 30) == 0)
    let before = peakMemory()
    for command in [
      { (_: inout String) in _ = try Inspection(at: specimen.path, now: Specimen.now) },
      {
        _ = try Inspection.doctor(
          specimen.path, now: Specimen.now, isDeep: true, style: Style()
        ).write(to: &$0)
      },
      { (_: inout String) in
        let files = try DatabaseFiles(at: specimen.path)
        for name in files.logs { _ = try files.bytes(of: name) }
      },
    ] as [(inout String) throws -> Void] {
      do {
        var text = ""
        try command(&text)
      } catch is InspectionError {
        continue
      }
    }
    #expect(peakMemory() - before < 3 << 30)
  }
}
