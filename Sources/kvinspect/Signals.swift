import Foundation
import LarderInspection

/// What happens when the process is asked to end.
enum Signals {
  /// Lets SIGINT, SIGTERM and SIGHUP remove snapshots and end the process.
  ///
  /// SIGPIPE is ignored, so that writing to a closed pipe is an error that ``StandardOutput`` sees.
  /// To be called before there is another thread: all threads must keep the signals blocked, so
  /// that they reach the one that waits for them.
  static func removeSnapshotsWhenEnded() {
    signal(SIGPIPE, SIG_IGN)
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
