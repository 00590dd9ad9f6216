import Dispatch
import LarderEngine

/// Stops a benchmark whose results are wrong: its times mean nothing.
package struct WrongResults: Error, CustomStringConvertible {
  package let description: String

  package init(description: String) { self.description = description }
}

/// The time that `work` takes, which must get `expected` results right.
package func timed(expecting expected: Int, _ work: () throws -> Int) throws -> Duration {
  let start = DispatchTime.monotonicNow
  let right = try work()
  let end = DispatchTime.monotonicNow
  guard right == expected else {
    throw WrongResults(description: "\(right) of \(expected) results were right")
  }
  return .nanoseconds(end.uptimeNanoseconds - start.uptimeNanoseconds)
}
