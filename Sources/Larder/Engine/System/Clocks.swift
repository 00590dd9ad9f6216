import CLarder
package import Dispatch

extension DispatchTime {
  /// The exact time on the monotonic clock, for measuring and waiting.
  package static var monotonicNow: DispatchTime { .now() }
}

/// The nanoseconds since some start, including the time that the system was asleep.
func continuousNanoseconds() -> Int { Int(clarder_continuous_nanoseconds()) }

/// Seconds on the monotonic clock, to within a few milliseconds.
///
/// It reads the coarse clock, which costs a fraction of the exact one: cursors read it at each
/// step.
func uptimeSeconds() -> Int { Int(clarder_uptime_seconds()) }

/// The system's date in seconds since 2001-01-01 00:00 UTC, at most some milliseconds late.
///
/// It costs a fifth of the exact date.
package func coarseSecondsSinceReferenceDate() -> Double { clarder_coarse_date() }
