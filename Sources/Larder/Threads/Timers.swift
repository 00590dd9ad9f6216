import Dispatch

/// Calls `fire` every `interval`, one call at a time, until the returned closure is called.
package typealias IntervalTimer =
  @Sendable (_ interval: Duration, _ fire: @escaping @Sendable () -> Void) -> @Sendable () -> Void

/// The system's timer, on a background queue.
package let systemIntervalTimer: IntervalTimer = { interval, fire in
  let seconds = interval.inSeconds
  // Only `cancel` is called from here on, which is allowed on any thread.
  nonisolated(unsafe) let timer = DispatchSource.makeTimerSource(
    queue: DispatchQueue.global(qos: .utility))
  timer.setEventHandler(handler: fire)
  timer.schedule(
    deadline: .monotonicNow + seconds, repeating: seconds,
    leeway: .milliseconds(Int(min(seconds, 600) * 100)))
  timer.activate()
  return { timer.cancel() }
}

/// Calls `fire` once after `delay`, unless the returned closure is called before.
package typealias LoadTimer =
  @Sendable (_ delay: Duration, _ fire: @escaping @Sendable () -> Void) -> @Sendable () -> Void

/// The system's timer, on a background queue.
package let systemLoadTimer: LoadTimer = { delay, fire in
  // Only `cancel` is called from here on, which is allowed on any thread.
  nonisolated(unsafe) let timer = DispatchSource.makeTimerSource(queue: DispatchQueue.global())
  timer.setEventHandler {
    fire()
    timer.cancel()
  }
  timer.schedule(deadline: .monotonicNow + delay.limited.inSeconds)
  timer.activate()
  return { timer.cancel() }
}
