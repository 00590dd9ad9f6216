import Foundation
import LarderInspection

/// Handles signals that end the process.
enum Signals {
  /// Makes SIGINT, SIGTERM and SIGHUP remove snapshots before they end the process.
  ///
  /// SIGPIPE is ignored, so that writing to a closed pipe is an error that ``StandardOutput`` sees.
  /// SIGXFSZ is ignored, so that a file at the limit of its size is an error that the store sees.
  /// Must be called before another thread starts: all threads must inherit the blocked signals, so
  /// that only the waiting thread receives them.
  static func removeSnapshotsWhenEnded() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    var ending = sigset_t()
    sigemptyset(&ending)
    for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&ending, number) }
    pthread_sigmask(SIG_BLOCK, &ending, nil)
    let awaited = ending
    Thread.detachNewThread {
      var number: Int32 = 0
      var awaited = awaited
      guard sigwait(&awaited, &number) == 0 else { return }
      Inspection.removeSnapshots(thenExit: 128 + number)
    }
  }
}
