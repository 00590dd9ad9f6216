import Dispatch

/// A queue with its own threads for disk work.
///
/// Disk work can block for seconds when compaction is behind, and Swift's cooperative pool may have
/// only two threads.
private let diskQueue = DispatchQueue(label: "larder.disk", attributes: .concurrent)

/// Runs blocking disk work outside Swift's cooperative pool, and returns its result.
///
/// Cancelling the calling task does not cancel the work: a write that has begun takes effect.
package func offCooperativePool<T: Sendable, E: Error>(
  _ work: @escaping @Sendable () throws(E) -> T
) async throws(E) -> T {
  let result = await withCheckedContinuation { (done: CheckedContinuation<Result<T, E>, Never>) in
    diskQueue.async {
      done.resume(returning: Result { () throws(E) in try work() })
    }
  }
  return try result.get()
}
