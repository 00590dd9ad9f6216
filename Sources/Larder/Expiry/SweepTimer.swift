import Dispatch
import LarderEngine

/// Calls what it is given every so many seconds, one call at a time, until what it answers is
/// called.
package typealias SweepTrigger =
  @Sendable (_ seconds: Double, _ fire: @escaping @Sendable () -> Void) -> @Sendable () -> Void

/// A timer of the system, on a thread of its own.
package let sweepTimer: SweepTrigger = { seconds, fire in
  // Nothing but `cancel` is called from here on, which may be done on any thread.
  nonisolated(unsafe) let timer = DispatchSource.makeTimerSource(
    queue: DispatchQueue.global(qos: .utility))
  timer.setEventHandler(handler: fire)
  timer.schedule(
    deadline: .monotonicNow + seconds, repeating: seconds,
    leeway: .milliseconds(Int(min(seconds, 600) * 100)))
  timer.activate()
  return { timer.cancel() }
}
