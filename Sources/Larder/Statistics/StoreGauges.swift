#if Metrics
  import CoreMetrics

  extension Store {
    /// The time between two measurements.
    private static var gaugeInterval: Duration { .seconds(10) }

    /// Sends what the store holds to swift-metrics: now, and at an interval from now on.
    ///
    /// - Returns: A closure that ends it.
    func sendGauges(by trigger: IntervalTimer) -> @Sendable () -> Void {
      sendGauges()
      return trigger(Self.gaugeInterval) { [weak self] in self?.sendGauges() }
    }

    func sendGauges() {
      guard context.origin == .disk else { return }
      let statistics = statistics
      send("larder_memory_bytes", statistics.memory.bytes)
      send("larder_memory_entries", statistics.memory.entries)
      do throws(StoreError) {
        send("larder_file_bytes", try context.engine.storedBytes())
      } catch {
        // The gauge keeps its value; calls that meet the same failure throw it.
      }
      for (name, cache) in statistics.caches {
        if let bytes = cache.heldBytes { send("larder_held_bytes", bytes, ("cache", name)) }
      }
    }

    private func send(_ label: String, _ value: Int, _ dimensions: (String, String)...) {
      let path = (context.engine as? LevelDBEngine)?.path
      let name = path?.split(separator: "/").last.map(String.init) ?? ""
      GaugeValue(label, [("store", name)] + dimensions).set(value)
    }
  }
#else
  extension Store {
    func sendGauges(by trigger: IntervalTimer) -> @Sendable () -> Void { {} }

    func sendGauges() {}
  }
#endif

/// A figure that rises and falls, for swift-metrics with the package trait `Metrics`.
package struct GaugeValue: ~Copyable, Sendable {
  #if Metrics
    private let gauge: Gauge

    package init(_ label: String, _ dimensions: [(String, String)]) {
      gauge = Gauge(label: label, dimensions: dimensions)
    }
  #else
    package init(_ label: String, _ dimensions: [(String, String)]) {}
  #endif

  package func set(_ value: Int) {
    #if Metrics
      gauge.record(value)
    #endif
  }
}
