import Foundation

/// The processor time of a thread for `body`, the least of two runs, in seconds.
package func processorTime(_ body: () throws -> Void) rethrows -> Double {
  func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
  return try (0..<2).map { _ in
    let start = now()
    try body()
    return now() - start
  }.min() ?? 0
}
