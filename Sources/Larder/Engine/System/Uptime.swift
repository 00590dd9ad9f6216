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
