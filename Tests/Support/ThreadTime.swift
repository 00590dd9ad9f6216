#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The processor time of this thread for `body`, the least of `rounds`, in seconds.
package func threadTime(rounds: Int = 2, _ body: () throws -> Void) rethrows -> Double {
  func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
  return try (0..<rounds).map { _ in
    let start = now()
    try body()
    return now() - start
  }.min() ?? 0
}
