import Synchronization

/// The time up to which values are confirmed that were read over one connection to a tier.
///
/// Each renewal extends the lease. When the connection is lost, the lease ends. Times are those of
/// ``WallClock/uptime()``, which includes the time that the system is asleep.
package final class Lease: Sendable {
  private let nanoseconds = Atomic<Int>(.min)

  /// Creates a lease that does not run yet.
  package init() {}

  /// Lets it run up to a time, if that is later than its end.
  ///
  /// It is renewed and ended by one caller at a time.
  package func extend(to end: Duration) {
    let end = end.wholeNanoseconds
    if end > nanoseconds.load(ordering: .relaxed) { nanoseconds.store(end, ordering: .releasing) }
  }

  /// Ends the lease.
  ///
  /// The owner does not extend an ended lease, but creates another one.
  package func end() { nanoseconds.store(.min, ordering: .releasing) }

  /// Whether it runs at a time.
  package func isRunning(at now: Duration) -> Bool {
    isRunning(atNanoseconds: now.wholeNanoseconds)
  }

  func isRunning(atNanoseconds now: Int) -> Bool { now < nanoseconds.load(ordering: .acquiring) }

  /// Its end; nil if it does not run, whatever the time.
  package var lastEnd: Duration? {
    let end = nanoseconds.load(ordering: .acquiring)
    return end == .min ? nil : .nanoseconds(end)
  }
}
