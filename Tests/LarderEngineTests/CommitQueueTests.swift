import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Who leads, when threads write at the same time.
@Suite struct CommitQueueTests {
  #if os(Linux)
    @Test("A running thread writes before a sleeping one is awake, and applies its batch.")
    func running() throws {
      // The sleeping thread may be awake in time once, but not each time.
      #expect(try (0..<100).contains { _ in try writesBeforeSleeper() })
    }

    /// Whether a thread writes before another one, whose batch waits and which is being woken.
    private func writesBeforeSleeper() throws -> Bool {
      let sequences = try sequences(leaderWrites: true)
      return try #require(sequences[0]) < #require(sequences[1])
    }

    @Test("A writer that waits is woken at the end of a turn, if no other thread writes.")
    func woken() throws { #expect(try sequences(leaderWrites: false)[1] != nil) }

    /// Lets thread 0 lead until thread 1 sleeps in line.
    ///
    /// With `leaderWrites`, thread 0 writes at once after that. Returns the sequences of the
    /// commits, by thread.
    private func sequences(leaderWrites: Bool) throws -> [Int: UInt64] {
      let directory = try TemporaryDirectory()
      let engine = try LevelDBEngine(at: directory.path)
      let isLed = Flag()
      let sleeper = SleepingThread()
      let commits = Mutex<[Int: Result<Commit, StoreError>]>([:])
      onThreads(2) { thread in
        if thread == 0 {
          engine.queue.withWriter { _ in
            isLed.raise()
            sleeper.waitUntilAsleep()
          }
          guard leaderWrites else { return }
        } else {
          isLed.wait()
          sleeper.becomeCurrent()
        }
        let commit = Result { () throws(StoreError) in
          var batch = WriteBatch()
          batch.put("key\(thread)", "value")
          return try engine.write(&batch, synced: false)
        }
        commits.withLock { $0[thread] = commit }
      }
      let sequences = try commits.withLock { try $0.mapValues { try $0.get().sequence } }
      for thread in sequences.keys { #expect(try engine.value("key\(thread)") == "value") }
      try engine.close()
      return sequences
    }
  #endif

  @Test("At most one other thread leads before a writer that waits.")
  func fairness() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    let outcomes = Mutex<[Result<Commit, StoreError>]>([])
    let isOver = Flag()
    let mostTurns = Atomic(0)
    onThreads(2) { thread in
      if thread == 0 {
        while !isOver.isRaised {
          let outcome = Result { () throws(StoreError) in try engine.put("key", "value") }
          outcomes.withLock { $0.append(outcome) }
        }
      } else {
        // The number of turns in which a write was in line, and how many there were for the last.
        var (turns, last) = (0, (write: 0, turns: 0))
        while turns < 200, last.turns <= 2 {
          engine.queue.withWriter { _ in
            guard engine.writersInLine > 0 else {
              sched_yield()
              return
            }
            let write = outcomes.withLock { $0.count }
            last = (write, last.write == write ? last.turns + 1 : 1)
            turns += 1
          }
          mostTurns.max(last.turns, ordering: .relaxed)
        }
        isOver.raise()
      }
    }
    // A write that gets in line during a turn waits for that one, and at most one more.
    #expect(mostTurns.load(ordering: .relaxed) <= 2)
    for outcome in outcomes.withLock({ $0 }) { _ = try outcome.get() }
    try engine.close()
  }
}
