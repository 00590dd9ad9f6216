import Dispatch
import Synchronization

/// Lets writers in one after another, and whole groups of them at once.
///
/// Whoever finds nobody at work leads: it takes what has gathered, applies all of it as one
/// LevelDB write, syncs if any member asks, and only then wakes the others. So writers that meet
/// share an append and an fsync, and one that is alone pays for uncontended locks only. A leader
/// works under no lock that others need to get in line.
struct CommitQueue: ~Copyable {
  /// What a leader takes at most, beside its own batch.
  private static let groupBytes = 1 << 20
  private static let groupBatches = 1000

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct Line {
    var isLed = false
    var waiting: [WaitingCommit] = []
  }

  private let line = Mutex(Line())
  // In memory of its own, so that using it costs no run-time check for exclusive access.
  private let writer: UnsafeMutablePointer<LevelDBWriter>
  // Who uses the writer holds it: leaders, of whom there is one at a time, and `withWriter`.
  private let writing = Mutex(())

  init(_ writer: consuming LevelDBWriter) {
    self.writer = UnsafeMutablePointer.allocate(capacity: 1)
    self.writer.initialize(to: writer)
  }

  deinit {
    writer.deinitialize(count: 1)
    writer.deallocate()
  }

  /// Applies a batch, together with those of others.
  ///
  /// Throws as ``StorageEngine/write(_:synced:)``.
  func commit(_ batch: inout WriteBatch, synced: Bool) throws(EngineError) -> Commit {
    try withUnsafeMutablePointer(to: &batch) { batch throws(EngineError) in
      guard let place = getInLine(batch, synced: synced) else {
        return try lead(batch, synced: synced)
      }
      place.wakeUp.wait()
      // Either a leader has done it, or this is the next leader.
      if let outcome = line.withLock({ _ in place.outcome }) { return try outcome.get() }
      return try lead(batch, synced: synced)
    }
  }

  /// Calls `body` while nothing is committed.
  func withWriter<R: Sendable, E: Error>(
    _ body: (inout LevelDBWriter) throws(E) -> R
  ) throws(E) -> R {
    try writing.withLock { _ throws(E) in try body(&writer.pointee) }
  }

  /// How many wait for the leader.
  var writersInLine: Int { line.withLock { $0.waiting.count } }

  /// A place in line for the batch; nil when its writer leads.
  private func getInLine(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool
  ) -> WaitingCommit? {
    line.withLock { line in
      guard line.isLed else {
        line.isLed = true
        return nil
      }
      let place = WaitingCommit(batch: batch, synced: synced)
      line.waiting.append(place)
      return place
    }
  }

  private func lead(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool
  ) throws(EngineError) -> Commit {
    let others = takeGroup(behind: batch.pointee.bytes.count)
    let results = withWriter { $0.commit(batch, synced: synced, with: others) }
    end(others, results)
    return try results.own.get()
  }

  private func takeGroup(behind ownBytes: Int) -> [WaitingCommit] {
    line.withLock { line in
      guard !line.waiting.isEmpty else { return [] }
      var bytes = ownBytes
      var count = 0
      while count < min(line.waiting.count, Self.groupBatches) {
        bytes += line.waiting[count].batch.pointee.bytes.count
        guard bytes <= Self.groupBytes else { break }
        count += 1
      }
      let group = Array(line.waiting[..<count])
      line.waiting.removeFirst(count)
      return group
    }
  }

  /// Tells the group how it went, and names the next leader.
  private func end(_ group: [WaitingCommit], _ results: GroupResults) {
    let (done, next) = line.withLock { line -> ([WaitingCommit], WaitingCommit?) in
      for (place, outcome) in zip(group, results.others) { place.outcome = outcome }
      var done = group
      if let cause = results.disabledCause {
        // They came while writing was possible, and it is not any more.
        for place in line.waiting { place.outcome = .failure(.writesDisabled(cause: cause)) }
        done += line.waiting
        line.waiting = []
      }
      guard !line.waiting.isEmpty else {
        line.isLed = false
        return (done, nil)
      }
      return (done, line.waiting.removeFirst())
    }
    next?.wakeUp.signal()
    for place in done { place.wakeUp.signal() }
  }
}

// @unchecked: the writer is used under `writing`.
extension CommitQueue: @unchecked Sendable {}

/// A batch in line, whose writer waits.
final class WaitingCommit {
  let batch: UnsafeMutablePointer<WriteBatch>
  let synced: Bool
  let wakeUp = DispatchSemaphore(value: 0)
  /// What became of it; nil when its writer is to lead.
  ///
  /// Under the lock of the line.
  var outcome: Result<Commit, EngineError>?

  init(batch: UnsafeMutablePointer<WriteBatch>, synced: Bool) {
    self.batch = batch
    self.synced = synced
  }
}

// @unchecked: the writer's thread waits while a leader uses the batch; `outcome` has a lock.
extension WaitingCommit: @unchecked Sendable {}

/// What became of a leader's batch and of those that it took along.
struct GroupResults {
  var own: Result<Commit, EngineError>
  var others: [Result<Commit, EngineError>] = []
  /// Why nothing can be written any more, when this group found that out.
  var disabledCause: String?
}
