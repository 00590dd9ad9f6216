import Foundation
import Larder

/// Some workloads of larder-bench at a smaller scale, to assess a machine within seconds.
enum MachineWorkloads {
  /// Measures the workloads one after another.
  ///
  /// - Parameters:
  ///   - records: The number of records to read from; at least 100.
  ///   - rounds: The number of rounds of A B B A; at least 1.
  ///   - directory: The directory for the databases; it must not exist.
  ///   - body: Receives each comparison, and the name of the other side.
  /// - Throws: ``WrongResults``, or an error of a store.
  static func measure(
    records: Int, rounds: Int, in directory: URL,
    _ body: (_ comparison: Comparison, _ other: String) -> Void
  ) throws {
    let filled = min(records, 20_000)
    let scale = Scale(records: records, filled: filled, visited: filled)
    let workspace = try Workspace(at: directory)
    func measure(_ contests: [Contest], against other: String) throws {
      for contest in contests { body(try contest.measure(rounds: rounds), other) }
    }

    let engines = try EngineSuite(scale, in: workspace) { try LevelDBSide(at: $0) }
    try measure([engines.fillseq, engines.readrandom, engines.readhot], against: "LevelDB")
    try engines.close()

    let caches = try CacheSuite(scale, in: workspace)
    try measure(caches.contests, against: "the engine")
    try caches.close()

    var random = WorkloadRandom(seed: Scale.seed)
    let items = try CodingSuite.feedItems(&random)
    let count = CodingSuite.operations(scale)
    try measure([items.directEncoding(count), items.directDecoding(count)], against: "JSON")

    let feeds = try FeedSuite(scale, in: workspace)
    try measure([feeds.saving, feeds.retrieving], against: "a file of JSON")
    try feeds.close()
  }
}
