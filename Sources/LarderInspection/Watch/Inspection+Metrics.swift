import Larder

extension Inspection {
  /// Writes what a running program counts in its store, in Prometheus' text format.
  ///
  /// The names are those that the package trait `Metrics` sends to swift-metrics, and one for reads
  /// from memory. Each value also has the label `store`, the name of the directory.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - output: Receives the text.
  /// - Returns: Always `fine`.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no store, or no
  ///   process publishes its statistics; `io`.
  package static func writeMetrics(
    of directory: String, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let path = try FileAccess.directory(directory)
    let statistics = try liveStatistics(of: path).statistics
    let store = path.split(separator: "/").last.map(String.init) ?? path
    for family in MetricFamily.all(of: statistics, in: store) { family.write(to: &output) }
    return .fine
  }
}

/// The values of one name.
private struct MetricFamily {
  private enum Kind: String {
    case counter, gauge
  }

  private let name: String
  private let help: String
  private let kind: Kind
  private var values: [(labels: [(String, String)], value: Int)] = []

  private init(_ kind: Kind, _ name: String, _ help: String) {
    (self.kind, self.name, self.help) = (kind, name, help)
  }

  func write(to output: inout some TextOutputStream) {
    guard !values.isEmpty else { return }
    output.write("# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n")
    for (labels, value) in values {
      let list = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
      output.write("\(name){\(list)} \(value)\n")
    }
  }

  /// A label's value as the format wants it.
  ///
  /// Characters that could control a terminal are written as a backslash and a number first: the
  /// format knows no such escape, so the backslash is escaped like any other.
  private static func escaped(_ text: String) -> String {
    text.escapedForTerminal.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
  }

  /// All families of a store, by name.
  static func all(of statistics: Statistics, in store: String) -> [MetricFamily] {
    let caches = statistics.caches.sorted { $0.key < $1.key }
    func family(
      _ kind: Kind, _ name: String, _ help: String,
      _ values: (CacheStatistics) -> [(labels: [(String, String)], value: Int?)]
    ) -> MetricFamily {
      var family = MetricFamily(kind, name, help)
      for (cache, statistics) in caches {
        for (labels, value) in values(statistics) {
          guard let value else { continue }
          family.values.append(([("store", store), ("cache", cache)] + labels, value))
        }
      }
      return family
    }
    func whole(_ kind: Kind, _ name: String, _ help: String, _ value: Int) -> MetricFamily {
      var family = MetricFamily(kind, name, help)
      family.values = [([("store", store)], value)]
      return family
    }
    func single(
      _ name: String, _ help: String, _ value: @escaping (CacheStatistics) -> Int
    ) -> MetricFamily {
      family(.counter, name, help) { [([], value($0))] }
    }
    return [
      family(.counter, "larder_reads_total", "Reads of a key, by outcome.") { cache in
        [
          ([("outcome", "fresh")], cache.reads.fresh), ([("outcome", "stale")], cache.reads.stale),
          ([("outcome", "expired")], cache.reads.expired),
          ([("outcome", "missing")], cache.reads.missing),
          ([("outcome", "failed")], cache.reads.failed),
        ]
      },
      single("larder_memory_reads_total", "Fresh reads whose value was in memory.") {
        $0.reads.memory
      },
      single("larder_saves_total", "Values saved.") { $0.saves },
      single("larder_removals_total", "Removals of a key.") { $0.removals },
      single("larder_clears_total", "Times that the cache was cleared.") { $0.clears },
      family(.counter, "larder_deletions_total", "Entries deleted by the store.") { cache in
        causes(cache).map { ([("cause", $0)], $1.entries) }
      },
      family(.counter, "larder_deleted_bytes_total", "Bytes of those entries.") { cache in
        causes(cache).map { ([("cause", $0)], $1.bytes) }
      },
      single("larder_loads_total", "Calls of a closure that loads.") { $0.loads.loads },
      single("larder_load_nanoseconds_total", "The time of these calls.") {
        Int(max(0, min($0.loads.time.inSeconds * 1e9, 9e18)))
      },
      single("larder_load_failures_total", "Those that threw.") { $0.loads.failures },
      single("larder_load_refreshes_total", "Loads that no caller waited for.") {
        $0.loads.refreshes
      },
      single("larder_load_joins_total", "Calls that joined a load.") { $0.loads.joins },
      single("larder_load_stale_total", "Stale entries returned instead of a loaded value.") {
        $0.loads.staleServed
      },
      single("larder_load_throttled_total", "Stale entries returned without a load.") {
        $0.loads.throttled
      },
      family(.gauge, "larder_held_bytes", "Bytes of a cache that has a budget.") {
        [([], $0.heldBytes)]
      },
      whole(.counter, "larder_sweeps_total", "Sweeps that have begun.", statistics.sweeps),
      whole(.gauge, "larder_memory_bytes", "Values in memory.", statistics.memory.bytes),
      whole(.gauge, "larder_memory_entries", "Their number.", statistics.memory.entries),
    ]
  }

  private static func causes(_ cache: CacheStatistics) -> [(String, EntryTotal)] {
    [
      ("sweep", cache.deletions.sweeps), ("validation", cache.deletions.validations),
      ("cache-budget", cache.deletions.cacheBudget), ("store-budget", cache.deletions.storeBudget),
    ]
  }
}
