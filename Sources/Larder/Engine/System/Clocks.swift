#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

package import Dispatch

extension DispatchTime {
  /// The exact time on the monotonic clock, for measuring and waiting.
  package static var monotonicNow: DispatchTime { .now() }
}

/// Seconds on the monotonic clock, to within a few milliseconds.
///
/// It reads the coarse clock, which costs a fraction of the exact one: cursors read it at each
/// step.
func uptimeSeconds() -> Int {
  var time = timespec()
  #if canImport(Darwin)
    clock_gettime(CLOCK_MONOTONIC_RAW_APPROX, &time)
  #else
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
  #endif
  return time.tv_sec
}

/// The system's date in seconds since 2001-01-01 00:00 UTC, at most some milliseconds late.
///
/// It costs a fifth of the exact date.
package func coarseSecondsSinceReferenceDate() -> Double {
  var time = timespec()
  #if canImport(Darwin)
    clock_gettime(CLOCK_REALTIME, &time)
  #else
    clock_gettime(CLOCK_REALTIME_COARSE, &time)
  #endif
  return Double(time.tv_sec - 978_307_200) + Double(time.tv_nsec) / 1e9
}
