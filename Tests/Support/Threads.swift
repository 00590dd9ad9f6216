import Foundation

/// Runs `body` on `count` new threads at once, and returns when all have ended.
///
/// Threads that run far too long end the test run.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    Thread.detachNewThread {
      body(index)
      group.leave()
    }
  }
  let limit = 4 * TimeLimit.seconds
  guard group.wait(timeout: .now() + .seconds(limit)) == .success else {
    fatalError("threads still run after \(limit) seconds")
  }
}
