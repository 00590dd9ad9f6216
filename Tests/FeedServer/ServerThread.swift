import Dispatch

/// Runs the server's tasks on a thread of its own.
///
/// Tests that compute for seconds occupy the threads of the cooperative pool. A server that had to
/// wait for one of them would answer after its clients' time limits.
final class ServerThread: TaskExecutor {
  private let queue = DispatchQueue(label: "feed-server")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
