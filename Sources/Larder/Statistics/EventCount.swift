import Synchronization

#if Metrics
  import CoreMetrics
#endif

/// The number of times an event has happened since a store was opened.
///
/// All counts of a store are of this type. With the package trait `Metrics`, each one also
/// increments a counter of swift-metrics.
struct EventCount: ~Copyable, Sendable {
  private let total = Atomic<Int>(0)

  #if Metrics
    private let counter: Counter

    init(_ label: String, _ dimensions: [(String, String)]) {
      counter = Counter(label: label, dimensions: dimensions)
    }
  #else
    init(_ label: String, _ dimensions: [(String, String)]) {}
  #endif

  var value: Int { total.load(ordering: .relaxed) }

  /// Counts an event that has a count of its own here, for swift-metrics.
  @inline(__always) func addElsewhere() {
    #if Metrics
      counter.increment(by: 1)
    #endif
  }

  func add(_ amount: Int = 1) {
    // Not `add`, which loops to detect an overflow; reaching one would take centuries.
    total.wrappingAdd(amount, ordering: .relaxed)
    #if Metrics
      counter.increment(by: amount)
    #endif
  }
}
