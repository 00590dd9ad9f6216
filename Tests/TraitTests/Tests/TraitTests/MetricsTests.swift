import CoreMetrics
import Foundation
import Larder
import LarderShared
import LarderTesting
import MetricsTestKit
import Testing

/// With the trait `Metrics`, a store reports its statistics to swift-metrics.
@Suite struct MetricsTests {
  /// What the process has reported; there can be one such system.
  private static let metrics: TestMetrics = {
    let metrics = TestMetrics()
    MetricsSystem.bootstrap(metrics)
    return metrics
  }()

  @Test("Every statistic is reported to its counter.")
  func counters() async throws {
    let metrics = Self.metrics
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let store = Store.inMemory(options: options)
    let cache = try store.cache(
      "cache", of: Int.self, lifetime: .fresh(for: .seconds(10), thenStaleFor: .seconds(10)),
      byteBudget: 200)
    try store.write { batch in
      for key in ["a", "b", "c"] { batch.save(1, for: key, in: cache) }
    }
    for _ in 0..<2 { _ = try cache.value(for: "none") }
    for _ in 0..<3 { _ = try cache.value(for: "a") }
    clock.advance(by: .seconds(10))
    for _ in 0..<4 { _ = try cache.value(for: "a") }
    clock.advance(by: .seconds(10))
    for _ in 0..<5 { _ = try cache.lookup(for: "a") }
    let long = String(repeating: "k", count: 1 << 17)
    for _ in 0..<6 { #expect(throws: StoreError.self) { try cache.value(for: long) } }
    for _ in 0..<2 { try cache.remove("a") }
    try store.sweep()
    try cache.save(1, for: "a")
    clock.advance(by: .seconds(20))
    try cache.validate()
    try cache.removeAll()
    for key in ["a", "b", "c", "d", "e"] { try cache.save(1, for: key) }
    #expect(try await cache.value(for: "loaded") { 1 } == 1)
    await #expect(throws: CancellationError.self) {
      try await cache.value(for: "failing") { throw CancellationError() }
    }

    // Other tests of the process have caches of their own.
    let counted = counts(of: metrics).filter {
      $0.0.contains("cache=cache")
        || !$0.0.contains("cache=") && !$0.0.contains("namespace=")
    }
    let statistics = try #require(store.statistics.caches["cache"])
    #expect(statistics.deletions.sweeps.entries == 2)
    #expect(statistics.deletions.validations.entries == 1)
    #expect(statistics.deletions.cacheBudget.entries > 0)
    let expected = expectedCounts(with: statistics.deletions)
    #expect(Dictionary(counted, uniquingKeysWith: +) == expected)
    #expect(counted.count == expected.count)
    try checkReadsFromMemory(metrics)
  }

  @Test("Every statistic of a tier is reported to its counter.")
  func tierCounters() async throws {
    let (metrics, server) = (Self.metrics, InMemoryServer())
    var options = SharedTier.Options()
    options.largestRecord = 1000
    let tiers = try (0..<2).map { _ in try SharedTier(server, namespace: "counted", options) }
    let shared = try tiers.map {
      try SharedCache(try Store.inMemory().cache("texts", of: String.self), in: $0)
    }
    #expect(try await shared[0].value(for: "k") == nil)
    for _ in 0..<2 { try await shared[0].save("a", for: "k") }
    for _ in 0..<3 { #expect(try await shared[1].value(for: "k") == "a") }
    try await shared[0].save("b", for: "k")
    for _ in 0..<4 { try await shared[0].save(String(repeating: "x", count: 2000), for: "long") }
    server.isReachable = false
    for _ in 0..<5 { #expect(try await shared[1].value(for: "k") == "a") }
    server.isReachable = true
    let statistics = tiers.map(\.statistics)
    func sum(_ count: KeyPath<SharedTier.Statistics, Int>) -> Int {
      statistics.reduce(0) { $0 + $1[keyPath: count] }
    }
    let expected = [
      "reads_total namespace=counted outcome=absent": 1,
      "reads_total namespace=counted outcome=value": 1,
      "reads_total namespace=counted outcome=confirmed": 2,
      "reads_total namespace=counted outcome=unusable": 0,
      "reads_total namespace=counted outcome=failed": 5,
      "writes_total namespace=counted outcome=written": 3,
      "writes_total namespace=counted outcome=overtaken": 0,
      "writes_total namespace=counted outcome=failed": 4,
      "awaited_loads_total namespace=counted": 0,
      "invalidations_total namespace=counted": sum(\.invalidations),
      "connections_total namespace=counted": 4,
    ]
    #expect(sum(\.invalidations) > 0)
    let counted = counts(of: metrics).filter { $0.0.contains("namespace=counted") }
      .map { (String($0.0.dropFirst("larder_tier_".count)), $0.1) }
    #expect(Dictionary(counted, uniquingKeysWith: +) == expected)
    #expect(
      sum(\.absences) == 1 && sum(\.values) == 1 && sum(\.confirmedCopies) == 2
        && sum(\.failedReads) == 5 && sum(\.writes) == 3 && sum(\.failedWrites) == 4
        && sum(\.connections) == 4)
    for tier in tiers { tier.close() }
    // Each tier is connected, loses the server, is connected again, and is closed.
    let levels = gauge("larder_tier_connected", of: "counted", in: metrics)
    #expect(levels.count { $0 == 1 } == 4 && levels.count { $0 == 0 } == 6)
  }

  /// The events that the test causes, by the label and dimensions of their counters.
  private func expectedCounts(with deletions: CacheStatistics.Deletions) -> [String: Int] {
    [
      "larder_sweeps_total": 1,
      "larder_reads_total cache=cache outcome=missing": 4,
      "larder_reads_total cache=cache outcome=fresh": 3,
      "larder_reads_total cache=cache outcome=stale": 4,
      "larder_reads_total cache=cache outcome=expired": 5,
      "larder_reads_total cache=cache outcome=failed": 6,
      "larder_loads_total cache=cache": 2,
      "larder_load_failures_total cache=cache": 1,
      "larder_load_nanoseconds_total cache=cache": 0,
      "larder_load_refreshes_total cache=cache": 0,
      "larder_load_joins_total cache=cache": 0,
      "larder_load_stale_total cache=cache": 0,
      "larder_load_throttled_total cache=cache": 0,
      "larder_saves_total cache=cache": 10,
      "larder_removals_total cache=cache": 2,
      "larder_clears_total cache=cache": 1,
      "larder_deletions_total cache=cache cause=sweep": 2,
      "larder_deletions_total cache=cache cause=validation": 1,
      "larder_deleted_bytes_total cache=cache cause=sweep": deletions.sweeps.bytes,
      "larder_deleted_bytes_total cache=cache cause=validation":
        deletions.validations.bytes,
      "larder_deletions_total cache=cache cause=cache-budget":
        deletions.cacheBudget.entries,
      "larder_deleted_bytes_total cache=cache cause=cache-budget":
        deletions.cacheBudget.bytes,
      "larder_deletions_total cache=cache cause=store-budget": 0,
      "larder_deleted_bytes_total cache=cache cause=store-budget": 0,
    ]
  }

  /// Values in memory are counted elsewhere than those on disk.
  private func checkReadsFromMemory(_ metrics: TestMetrics) throws {
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "larder-metrics-\(UUID().uuidString)")
    let store = try Store(at: directory)
    let cache = try store.cache("resident", of: Int.self)
    try cache.save(1, for: "a")
    for _ in 0..<3 { #expect(try cache.value(for: "a") == 1) }
    #expect(store.statistics.caches["resident"]?.reads.memory == 2)
    let fresh = counts(of: metrics).first {
      $0.0 == "larder_reads_total cache=resident outcome=fresh"
    }
    #expect(fresh?.1 == 3)
    let held = store.statistics.memory
    #expect(held.entries == 1)
    let synced = times("larder_commit_duration_seconds", "powerLoss", in: metrics)
    try cache.save(2, for: "b", durability: .powerLoss)
    try store.close()
    let name = directory.lastPathComponent
    #expect(gauge("larder_memory_entries", of: name, in: metrics) == [0, 1])
    #expect(gauge("larder_memory_bytes", of: name, in: metrics) == [0, Double(held.bytes)])
    let files = gauge("larder_file_bytes", of: name, in: metrics)
    #expect(files.count == 2 && files[0] > 0 && files[1] > files[0])
    #expect(times("larder_commit_duration_seconds", "processCrash", in: metrics) > 10)
    #expect(times("larder_commit_duration_seconds", "powerLoss", in: metrics) == synced + 1)
    #expect(times("larder_load_duration_seconds", "cache", in: metrics) == 2)
    try FileManager.default.removeItem(at: directory)
  }

  /// The values of the gauge of a store or a tier, one after another.
  private func gauge(_ label: String, of name: String, in metrics: TestMetrics) -> [Double] {
    metrics.recorders.filter { recorder in
      recorder.label == label && recorder.dimensions.contains { $0.1 == name }
    }.flatMap(\.values)
  }

  /// The number of times that a timer with a dimension of this value has recorded.
  private func times(_ label: String, _ dimension: String, in metrics: TestMetrics) -> Int {
    metrics.timers.filter { timer in
      timer.label == label && timer.dimensions.contains { $0.1 == dimension }
    }.reduce(0) { $0 + $1.values.count }
  }

  private func counts(of metrics: TestMetrics) -> [(String, Int)] {
    metrics.counters.map { counter in
      let dimensions = counter.dimensions.map { " \($0)=\($1)" }.joined()
      return ("\(counter.label)\(dimensions)", Int(counter.totalValue))
    }
  }
}
