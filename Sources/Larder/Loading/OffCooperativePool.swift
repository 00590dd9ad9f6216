import Dispatch

/// Threads of our own: disk work may wait for seconds when compaction is behind, and a thread of
/// Swift's cooperative pool that waits is one of as few as two.
private let diskQueue = DispatchQueue(label: "larder.disk", attributes: .concurrent)

/// Runs blocking disk work away from Swift's cooperative pool, and waits for it.
///
/// The work is not cancelled with the calling task: a write that has begun takes effect.
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
