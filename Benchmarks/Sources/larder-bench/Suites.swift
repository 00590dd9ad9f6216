/// A group of contests with common databases and one table.
struct Suite: Sendable {
  /// The contests, with their databases created, and a closure that closes the databases.
  typealias Prepared = (contests: [Contest], close: () throws -> Void)

  /// The name for `--suite`.
  let name: String
  /// The heading of the table: Larder's side and the other one.
  let title: String
  /// Whether a missed goal fails the run, at every scale.
  ///
  /// So it is for a suite with Larder on both sides, whose ratios depend little on the machine.
  var isAlwaysChecked = false
  /// Lines below the table.
  var notes: String?
  let prepare: @Sendable (BenchScale, Workspace) throws -> Prepared

  /// All suites, in the order of the tables.
  static let all = own + shared

  #if Shared
    private static let shared = [
      Suite(name: "shared", title: "a cache that machines share, against hiredis, by a socket") {
        let suite = try SharedSuite($0, in: $1)
        return (try suite.contests, suite.close)
      }
    ]
  #else
    private static let shared: [Suite] = []
  #endif

  private static let own = [
    Suite(name: "engine", title: "puts and gets of the engine, against C++ on the same LevelDB") {
      let suite = try EngineSuite($0.workloads, in: $1) { RawSide(at: $0) }
      return (suite.contests, suite.close)
    },
    Suite(name: "records", title: "Cache.value of raw bytes, against the engine's get") {
      let suite = try CacheSuite($0.workloads, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "small", title: "small records in a cache, against the same bytes in C++") {
      (try SmallSuite($0, in: $1).contests, {})
    },
    Suite(name: "memory", title: "values in memory, against other ways to keep them") {
      let suite = try MemorySuite($0, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "feeds", title: "100 feed items in a cache, against one JSON file per key") {
      let suite = try FeedSuite($0.workloads, in: $1)
      return (try suite.contests(), suite.close)
    },
    Suite(name: "coding", title: "the binary coder, against JSON or the side named in the row") {
      scale, _ in
      (try CodingSuite.contests(scale.workloads), {})
    },
    Suite(name: "untuned", title: "coding of types without tuning, against JSON") { scale, _ in
      (try UntunedSuite(scale.workloads).contests, {})
    },
    Suite(name: "expiry", title: "sweeps against C++, and saves with a lifetime against others") {
      let live = LiveEntriesSuite($0, in: $1)
      return (try SweepSuite($0, in: $1).contests + live.contests, live.close)
    },
    Suite(name: "sizes", title: "typed reads as the store grows, against the same bytes in C++") {
      (SizesSuite($0, in: $1).contests, {})
    },
    Suite(
      name: "growth", title: "each call beside many of a thing, against the same beside few",
      isAlwaysChecked: true,
      notes: "Costs that may grow, as the documentation says:\n\n"
        + GrowthSuite.notes
    ) {
      let suite = GrowthSuite($0, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "open", title: "opening a store, against C++ on the same LevelDB") {
      (try OpeningSuite($0, in: $1).contests, {})
    },
    Suite(name: "durable", title: "writes that survive a power loss, against C++, and by threads") {
      (DurabilitySuite($0, in: $1).contests, {})
    },
    Suite(name: "threads", title: "calls by 16 threads or tasks, against the same by one") {
      let suite = try ThreadsSuite($0, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "compression", title: "large encoded values, against the same not compressed") {
      let suite = try CompressionSuite($0, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "peers", title: "a cache, against other stores used as one") {
      (PeerSuite($0, in: $1).contests, {})
    },
    Suite(name: "observation", title: "saves with a stream of changes, against saves without") {
      let suite = try ObservationSuite($0, in: $1)
      return (suite.contests, suite.close)
    },
    Suite(name: "migration", title: "migration, against the older schema or a migration by hand") {
      (try MigrationSuite($0, in: $1).contests, {})
    },
  ]
}
