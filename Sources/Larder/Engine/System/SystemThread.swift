import CLarder

/// Starts a thread that runs `body` and ends with it; false if the system refuses one.
package func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
  // Unmanaged: C hands the pointer to the thread, which takes the reference once it runs.
  let start = Unmanaged.passRetained(ThreadStart(body))
  let isStarted = clarder_start_thread(
    // Unmanaged: balances the retain above.
    { Unmanaged<ThreadStart>.fromOpaque($0).takeRetainedValue().body() }, start.toOpaque())
  if !isStarted { start.release() }
  return isStarted
}

private final class ThreadStart {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}
