import Synchronization

/// The time up to which values may be believed that one connection to a tier has brought.
///
/// The connection renews it, and ends it when it is lost. Times are of ``WallClock/uptime()``,
/// which goes on while the system sleeps.
package final class Lease: Sendable {
  private let nanoseconds = Atomic<Int64>(.min)

  /// Creates a lease that does not run yet.
  package init() {}

  /// Lets it run up to a time, if that is later than its end.
  ///
  /// It is renewed and ended by one caller at a time.
  package func extend(to end: Duration) {
    let end = Int64(end / .nanoseconds(1))
    if end > nanoseconds.load(ordering: .relaxed) { nanoseconds.store(end, ordering: .releasing) }
  }

  /// Ends it for good: whoever renews it makes another one afterwards.
  package func end() { nanoseconds.store(.min, ordering: .releasing) }

  /// Whether it runs at a time.
  package func isRunning(at now: Duration) -> Bool {
    Int64(now / .nanoseconds(1)) < nanoseconds.load(ordering: .acquiring)
  }

  /// Its end; nil if it does not run, whatever the time.
  package var lastEnd: Duration? {
    let end = nanoseconds.load(ordering: .acquiring)
    return end == .min ? nil : .nanoseconds(end)
  }
}
