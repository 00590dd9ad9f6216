package import Foundation
import Larder

/// Some of the benchmarks' workloads at a smaller scale, for an idea of a machine within seconds.
package enum MachineWorkloads {
  /// Measures them one after another.
  ///
  /// - Parameters:
  ///   - records: How many records are read from; at least 100.
  ///   - rounds: How many rounds of A B B A; at least 1.
  ///   - directory: Where the databases go; it must not be there.
  ///   - body: Is told each outcome, and what Larder was measured against.
  /// - Throws: ``WrongResults`` for a result that is not what it must be, or what a store throws.
  package static func measure(
    records: Int, rounds: Int, in directory: URL,
    _ body: (_ outcome: Comparison, _ other: String) -> Void
  ) throws {
    var scale = Scale.quick
    scale.records = records
    scale.filled = min(records, 20_000)
    scale.visited = scale.filled
    let workspace = try Workspace(at: directory)
    func measure(_ contests: [Contest], _ names: Set<String>, _ other: String) throws {
      for contest in contests where names.contains(contest.name) {
        body(try contest.measure(rounds: rounds), other)
      }
    }

    let engines = try EngineSuite(scale, in: workspace) { try LevelDBSide(at: $0) }
    try measure(engines.contests, ["fillseq", "readrandom", "readhot"], "LevelDB")
    try engines.close()

    let caches = try CacheSuite(scale, in: workspace)
    try measure(caches.contests, ["Cache.value", "Cache.value hot"], "the engine")
    try caches.close()

    var random = SplitMix64(seed: Scale.seed)
    let coding = try CodingSuite.feedItems(&random)
      .contests(CodingSuite.operations(scale), CodingGoals())
    try measure(
      coding, ["encode 100 feed items, directly", "decode 100 feed items, directly"], "JSON")

    let feeds = try FeedSuite(scale, in: workspace)
    try measure(
      feeds.contests, ["save 100 feed items", "retrieve 100 feed items"], "a file of JSON")
    try feeds.close()
  }
}
