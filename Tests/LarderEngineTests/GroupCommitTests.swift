import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A group commit checks the conditions of its batches as if they were written one by one.
extension WriteFailureTests {
  @Test("One of eight threads wins each absent key.")
  func absentKeys() throws {
    try withEngine(.levelDB) { engine in
      let winners = Tally()
      onThreads(8) { thread in
        for index in 0..<200 {
          winners.record { () throws(StoreError) in
            var batch = WriteBatch()
            let isAbsent = batch.require("key\(index)", .absent)
            batch.put("key\(index)", "\(thread)", if: isAbsent)
            let commit = try engine.write(&batch, synced: false)
            return commit.failed.isEmpty ? "key\(index)=\(thread)" : nil
          }
        }
      }
      let found = try engine.entries().map { entry in
        String(decoding: entry.key + bytes("=") + entry.value, as: UTF8.self)
      }
      let (names, errors) = winners.state.withLock { $0 }
      #expect(errors == [])
      #expect(found.count == 200)
      #expect(names.sorted() == found.sorted())
    }
  }

  @Test("No increment by eight threads is lost.")
  func increments() throws {
    try withEngine(.levelDB) { engine in
      let counter = bytes("counter")
      try engine.put(counter, stampedValue(0, tail: 0) + [0, 0], stamped: true)
      let done = Tally()
      onThreads(8) { _ in
        for _ in 0..<100 {
          done.record { () throws(StoreError) in
            while try !Self.increment(counter, in: engine) {}
            return "done"
          }
        }
      }
      let (names, errors) = done.state.withLock { $0 }
      #expect(errors == [])
      #expect(names.count == 800)
      let value = try #require(try engine.value(counter))
      #expect(isIntact(value, key: counter))
      #expect(Array(value.suffix(2)) == [UInt8(800 >> 8), UInt8(800 & 0xFF)])
    }
  }

  /// Adds one to a counter of two bytes; returns false if another thread was faster.
  private static func increment(
    _ key: [UInt8], in engine: any StorageEngine
  ) throws(StoreError) -> Bool {
    guard let value = try engine.value(key), let since = sequence(of: value) else {
      throw .corrupt("there is no counter")
    }
    let count = Int(value[value.count - 2]) << 8 + Int(value[value.count - 1]) + 1
    var batch = WriteBatch()
    let isUnchanged = batch.require(key.span.bytes, .unchanged(since: since, in: .test))
    batch.put(key.span.bytes, stamp: .test, if: isUnchanged) {
      $0.append(stampedValue(0, tail: 0) + [UInt8(count >> 8), UInt8(count & 0xFF)])
    }
    return try engine.write(&batch, synced: false).failed.isEmpty
  }
}

/// Writers that wait while the leader's write fails get an error, and their batches are dropped.
extension WriteFailureTests {
  @Test("Writers that wait behind a failed write get `writesDisabled`.")
  func failedLeader() throws {
    let directory = try TemporaryDirectory()
    let (isArmed, isInside, mayFail, isHealed) = (Flag(), Flag(), Flag(), Flag())
    var options = LevelDBOptions()
    // The leader of a synced write checks the directory after the write.
    options.files = DirectFiles { () throws(StoreError) in
      guard isArmed.isRaised, !isHealed.isRaised else { return }
      isInside.raise()
      mayFail.wait()
      throw .io("the disk is gone")
    }
    let engine = try LevelDBEngine(at: directory.path, options: options)
    try engine.put("before", "value")
    isArmed.raise()
    let outcomes = Mutex<[String: StoreError]>([:])
    onThreads(4) { thread in
      do throws(StoreError) {
        if thread > 0 { isInside.wait() }
        if thread == 3 {
          while engine.writersInLine < 2 { sched_yield() }
          return mayFail.raise()
        }
        var batch = WriteBatch()
        batch.put("thread\(thread)", "value")
        try engine.write(&batch, synced: thread == 0)
      } catch {
        outcomes.withLock { $0["thread\(thread)"] = error }
      }
    }

    let cause = StoreError.io("the disk is gone")
    let disabled = StoreError.writesDisabled(cause: "\(cause)")
    let expected = ["thread0": cause, "thread1": disabled, "thread2": disabled]
    #expect(outcomes.withLock { $0 } == expected)
    isHealed.raise()
    try engine.put("after", "value")
    for key in ["thread1", "thread2"] { #expect(try engine.value(key) == nil) }
    try engine.close()
    let again = try LevelDBEngine(at: directory.path)
    for key in ["before", "after"] { #expect(try again.value(key) == "value") }
    for key in ["thread1", "thread2"] { #expect(try again.value(key) == nil) }
    try again.close()
  }
}

/// The names and the errors that threads have recorded.
private final class Tally: Sendable {
  let state = Mutex<(names: [String], errors: [StoreError])>(([], []))

  /// Records the name that `body` returns, or its error.
  func record(_ body: () throws(StoreError) -> String?) {
    do throws(StoreError) {
      if let name = try body() { state.withLock { $0.names.append(name) } }
    } catch {
      state.withLock { $0.errors.append(error) }
    }
  }
}
