import Synchronization

#if Metrics
  import CoreMetrics
#endif

/// How often something has happened since a store was opened.
///
/// It is all that counts here. With the package's trait `Metrics`, what it counts goes to a counter
/// of swift-metrics too, made with it.
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

  func add(_ amount: Int = 1) {
    // Not `add`, which is a loop for the sake of an overflow that takes centuries.
    total.wrappingAdd(amount, ordering: .relaxed)
    #if Metrics
      counter.increment(by: amount)
    #endif
  }
}
