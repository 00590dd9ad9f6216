import Dispatch
import Synchronization

/// Lets one writer or one group of writers in at a time.
///
/// A writer that finds the queue idle leads. It takes the batches that wait, applies them as one
/// LevelDB write, syncs if any of them asks for it, and then wakes their writers. So concurrent
/// writers share an append and an fsync, and a single writer pays for two uncontended locks. A
/// leader holds no lock that others need to get in line.
struct CommitQueue: ~Copyable {
  /// The most that a leader takes besides its own batch.
  private static let groupBytes = 1 << 20
  private static let groupBatches = 1000

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct Line {
    var isLed = false
    var waiting: [WaitingCommit] = []
    var gathering = Gathering()
  }

  private let line = Lock(Line())
  // Allocated on its own, so that its use needs no run-time check for exclusive access. Only the
  // leader uses it.
  private let writer: UnsafeMutablePointer<LevelDBWriter>

  init(_ writer: consuming LevelDBWriter) {
    self.writer = UnsafeMutablePointer.allocate(capacity: 1)
    self.writer.initialize(to: writer)
  }

  deinit {
    writer.deinitialize(count: 1)
    writer.deallocate()
  }

  /// Applies a batch, together with the batches of concurrent writers.
  ///
  /// Throws as ``StorageEngine/write(_:synced:)``.
  func commit(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    try withUnsafeMutablePointer(to: &batch) { batch throws(StoreError) in
      if let commit = getInLine(batch, synced: synced) {
        commit.wakeUp.wait()
        // Either a leader has applied it, or this is the next leader.
        if let outcome = commit.outcome { return try outcome.get() }
      } else if !synced {
        // If the queue was idle, no writer was waiting.
        return try lead(batch, synced: false, with: [])
      }
      if synced { gather() }
      return try lead(batch, synced: synced, with: takeGroup(behind: batch.pointee.bytes.count))
    }
  }

  /// Calls `body` with the writer, while no batch is committed.
  func withWriter<R: Sendable, E: Error>(
    _ body: (inout LevelDBWriter) throws(E) -> R
  ) throws(E) -> R {
    var nothing = WriteBatch()
    withUnsafeMutablePointer(to: &nothing) { nothing in
      getInLine(nothing, synced: false, alone: true)?.wakeUp.wait()
    }
    defer { handOver() }
    return try body(&writer.pointee)
  }

  /// The number of writers that wait for the leader.
  var writersInLine: Int { line.withLock { $0.waiting.count } }

  /// The caller's commit in line; nil if the caller leads.
  private func getInLine(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, alone: Bool = false
  ) -> WaitingCommit? {
    line.withLock { line in
      guard line.isLed else {
        line.isLed = true
        return nil
      }
      let commit = WaitingCommit(batch: batch, synced: synced, isAlone: alone)
      line.waiting.append(commit)
      line.gathering.noteArrival(line.waiting.count + 1)
      return commit
    }
  }

  /// Waits for the writers of the last group, to share an fsync with them again.
  private func gather() {
    while let wait = line.withLock({ $0.gathering.wait(with: $0.waiting.count + 1) }) { wait.end() }
  }

  private func lead(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, with group: [WaitingCommit]
  ) throws(StoreError) -> Commit {
    let start = synced ? DispatchTime.monotonicNow : nil
    defer {
      if let start {
        line.withLock { $0.gathering.didWrite(since: start, 1 + group.count + $0.waiting.count) }
      }
      // The group first: its writers may be back before the next leader takes its group.
      for commit in group { commit.wakeUp.signal() }
      handOver()
    }
    return try writer.pointee.commit(batch, synced: synced, with: group)
  }

  private func takeGroup(behind ownBytes: Int) -> [WaitingCommit] {
    line.withLock { line in
      var bytes = ownBytes
      let group = line.waiting.prefix(Self.groupBatches).prefix { commit in
        bytes += commit.batch.pointee.bytes.count
        return bytes <= Self.groupBytes && !commit.isAlone
      }
      line.waiting.removeFirst(group.count)
      return Array(group)
    }
  }

  /// Ends leading, and wakes the next leader if a writer waits.
  private func handOver() {
    let disabledCause = writer.pointee.disabledCause
    let next: WaitingCommit? = line.withLock { line in
      if let disabledCause { line.turnAway(because: disabledCause) }
      guard !line.waiting.isEmpty else {
        line.isLed = false
        return nil
      }
      return line.waiting.removeFirst()
    }
    next?.wakeUp.signal()
  }
}

extension CommitQueue.Line {
  /// Fails the waiting batches after writing was disabled.
  fileprivate mutating func turnAway(because cause: String) {
    for commit in waiting where !commit.isAlone {
      commit.outcome = .failure(.writesDisabled(cause: cause))
      commit.wakeUp.signal()
    }
    waiting.removeAll { !$0.isAlone }
  }
}

// @unchecked: there is one leader at a time, and it alone uses the writer.
extension CommitQueue: @unchecked Sendable {}

/// A thread that waits in line: with a batch, or to use the writer alone.
final class WaitingCommit {
  let batch: UnsafeMutablePointer<WriteBatch>
  let synced: Bool
  /// Whether it waits to use the writer, without a batch for a leader to apply.
  let isAlone: Bool
  let wakeUp = DispatchSemaphore(value: 0)
  /// The outcome of the batch; nil if its writer is the next leader.
  ///
  /// It is set before the waiter is woken, and read by the waiter alone.
  var outcome: Result<Commit, StoreError>?

  init(batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, isAlone: Bool) {
    self.batch = batch
    self.synced = synced
    self.isAlone = isAlone
  }
}

// @unchecked: the writer's thread waits while a leader uses the batch and sets the outcome.
extension WaitingCommit: @unchecked Sendable {}

/// Counts the groups of batches that were written, and the times the database was reopened.
///
/// A leader increases the count before the next one leads. So if a leader finds the count that a
/// reader found before it read, nothing was written in between. A write that the reader saw half
/// of, or that failed and took effect later, has increased it.
final class WriteCount: Sendable {
  private let count = Atomic(0)

  var now: Int { count.load(ordering: .acquiring) }
  func increase() { count.add(1, ordering: .acquiringAndReleasing) }
}
