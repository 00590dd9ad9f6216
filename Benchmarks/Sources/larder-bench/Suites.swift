/// Contests that stand on the same databases: one table.
struct Suite: Sendable {
  /// The contests, once their databases are there, and what closes those.
  typealias Prepared = (contests: [Contest], close: () throws -> Void)

  /// What `--suite` calls it.
  let name: String
  /// What is measured against what, for the heading of the table.
  let title: String
  let prepare: @Sendable (BenchScale, Workspace) throws -> Prepared

  /// All of them, in the order of the tables.
  static let all = [
    Suite(name: "engine", title: "bytes in, bytes out: the engine, to C++ on the same LevelDB") {
      let suite = try EngineSuite($0.workloads, in: $1) { RawSide(at: $0) }
      return (suite.contests, suite.close)
    },
    Suite(name: "records", title: "Cache.value of raw bytes, to the engine's own read") {
      let suite = try CacheSuite($0.workloads, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "small", title: "small records in a cache, to the same bytes in C++") {
      (try SmallSuite($0, in: $1).contests, {})
    },
    Suite(name: "feeds", title: "100 feed items in a cache, to a file of JSON for each key") {
      let suite = try FeedSuite($0.workloads, in: $1)
      return (try suite.contests(), suite.close)
    },
    Suite(name: "coding", title: "the binary coder, to JSON or what the row names") { scale, _ in
      (try CodingSuite.contests(scale.workloads), {})
    },
    Suite(name: "expiry", title: "sweeping and its index, to C++ on the same LevelDB") {
      (try SweepSuite($0, in: $1).contests, {})
    },
    Suite(name: "growth", title: "a typed read as the store grows, to the same bytes in C++") {
      (GrowthSuite($0, in: $1).contests, {})
    },
    Suite(name: "open", title: "opening a store, to C++ on the same LevelDB") {
      (try OpeningSuite($0, in: $1).contests, {})
    },
    Suite(name: "durable", title: "writes that survive a power loss, to C++ and by threads") {
      (DurabilitySuite($0, in: $1).contests, {})
    },
    Suite(name: "peers", title: "a cache, to other stores used as one") {
      (PeerSuite($0, in: $1).contests, {})
    },
    Suite(name: "values", title: "large values, to other stores") {
      (LargeValueSuite($0, in: $1).contests, {})
    },
    Suite(name: "observation", title: "saving while somebody observes, to nobody") {
      let suite = try ObservationSuite($0, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "migration", title: "older schema versions, to today's or by hand") {
      (try MigrationSuite($0, in: $1).contests, {})
    },
  ]
}
