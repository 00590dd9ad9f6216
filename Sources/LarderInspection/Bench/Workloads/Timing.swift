import Dispatch
import Larder

/// Wrong results of a benchmark, which make its times meaningless and end the run.
struct WrongResults: Error, CustomStringConvertible {
  let description: String
}

/// The duration of `work`, which returns its number of right results.
///
/// Throws ``WrongResults`` if that number is not `expected`.
func timed(expecting expected: Int, _ work: () throws -> Int) throws -> Duration {
  let start = DispatchTime.monotonicNow
  let right = try work()
  let end = DispatchTime.monotonicNow
  guard right == expected else {
    throw WrongResults(description: "\(right) of \(expected) results were right")
  }
  return .nanoseconds(end.uptimeNanoseconds - start.uptimeNanoseconds)
}
