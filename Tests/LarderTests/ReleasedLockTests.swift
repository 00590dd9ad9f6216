#if os(Linux)
  import LarderTestSupport
  import Synchronization
  import Testing

  @testable import Larder

  /// Any thread can take a released lock, even if another thread waits for it.
  @Suite struct ReleasedLockTests {
    @Test("A running thread takes a lock that is released before a sleeping one is awake.")
    func released() {
      // The sleeping thread may be awake in time once, but not each time.
      #expect((0..<100).contains { _ in takesReleasedLock() })
    }

    /// Whether a thread can take a lock again at once, although another one has waited for it.
    private func takesReleasedLock() -> Bool {
      let lock = Lock(())
      let (isTaken, hasTried) = (Flag(), Flag())
      let sleeper = SleepingThread()
      let wasTakenAgain = Atomic(false)
      onThreads(2) { thread in
        if thread == 0 {
          lock.withLock { _ in
            isTaken.raise()
            sleeper.waitUntilAsleep()
          }
          let again: Void? = lock.withLockIfAvailable { _ in }
          wasTakenAgain.store(again != nil, ordering: .relaxed)
          hasTried.raise()
        } else {
          isTaken.wait()
          sleeper.becomeCurrent()
          lock.withLock { _ in hasTried.wait() }
        }
      }
      return wasTakenAgain.load(ordering: .relaxed)
    }
  }
#endif
