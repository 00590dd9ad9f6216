import CLarder
import Dispatch
import Synchronization

/// Lets one writer or one group of writers in at a time.
///
/// A writer that finds no leader leads. It takes the batches that wait, applies them as one
/// LevelDB write, syncs if any of them asks for it, and then wakes their writers. So concurrent
/// writers share an append and an fsync, and a single writer pays for two uncontended locks. A
/// leader holds no lock that others need to get in line.
///
/// At the end of its turn, a leader wakes the first writer that waits. Until that thread is awake,
/// a running one may lead. It also applies the batches that wait. If the first one does not fit
/// beside its own, the writer of that one leads next.
struct CommitQueue: ~Copyable {
  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct Line {
    /// The most that a leader takes besides its own batch.
    static let groupBytes = 1 << 20
    static let groupBatches = 1000

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
      let (commit, othersWait) = getInLine(batch, synced: synced)
      if let commit {
        waitForTurn(of: commit)
        // Either a leader has applied it, or this is the next leader.
        if let outcome = commit.outcome { return try outcome.get() }
      }
      if synced { gather() }
      guard synced || othersWait else { return try lead(batch, synced: false, with: []) }
      let group = line.withLock { $0.takeGroup(behind: batch.pointee.bytes.count) }
      return try lead(batch, synced: synced, with: group)
    }
  }

  /// Calls `body` with the writer, while no batch is committed.
  func withWriter<R: Sendable, E: Error>(
    _ body: (inout LevelDBWriter) throws(E) -> R
  ) throws(E) -> R {
    var nothing = WriteBatch()
    withUnsafeMutablePointer(to: &nothing) { nothing in
      let (place, _) = getInLine(nothing, synced: false, alone: true)
      if let place { waitForTurn(of: place) }
    }
    defer { endTurn() }
    return try body(&writer.pointee)
  }

  /// The number of writers that wait for the leader.
  var writersInLine: Int { line.withLock { $0.waiting.count } }

  /// The caller's commit in line, or nil if the caller leads; and whether any writer waits.
  private func getInLine(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, alone: Bool = false
  ) -> (WaitingCommit?, othersWait: Bool) {
    line.withLock { line in
      guard line.isLed else {
        line.isLed = true
        // Only this leader gets in before it, who will apply its batch if it fits.
        line.waiting.first?.isNext = true
        return (nil, !line.waiting.isEmpty)
      }
      let commit = WaitingCommit(batch: batch, synced: synced, isAlone: alone)
      line.waiting.append(commit)
      line.gathering.noteArrival(line.waiting.count + 1)
      return (commit, true)
    }
  }

  /// Waits until a leader has applied the batch, or its writer leads.
  private func waitForTurn(of commit: WaitingCommit) {
    repeat { commit.wait() } while !line.withLock { $0.endWait(of: commit) }
  }

  /// Waits for the writers of the last group, to share an fsync with them again.
  private func gather() {
    while let wait = line.withLock({ $0.gathering.wait(with: $0.waiting.count + 1) }) { wait.end() }
  }

  private func lead(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, with group: [WaitingCommit]
  ) throws(StoreError) -> Commit {
    let start = synced ? DispatchTime.monotonicNow : nil
    defer { endTurn(with: group, since: start) }
    return try writer.pointee.commit(batch, synced: synced, with: group)
  }

  /// Ends the caller's turn to lead, and wakes the writers of its group and the first that waits.
  ///
  /// `start` is when a synced write began; nil after others.
  private func endTurn(with group: [WaitingCommit] = [], since start: DispatchTime? = nil) {
    let disabledCause = writer.pointee.disabledCause
    let next: WaitingCommit? = line.withLock { line in
      if let start { line.gathering.didWrite(since: start, 1 + group.count + line.waiting.count) }
      for commit in group { commit.state = .isSettled }
      if let disabledCause { line.turnAway(because: disabledCause) }
      return line.endTurn()
    }
    next?.wake()
    for commit in group { commit.wake() }
  }
}

extension CommitQueue.Line {
  /// The batches that the leader applies besides its own.
  fileprivate mutating func takeGroup(behind ownBytes: Int) -> [WaitingCommit] {
    guard !waiting.isEmpty else { return [] }
    var bytes = ownBytes
    let group = waiting.prefix(Self.groupBatches).prefix { commit in
      bytes += commit.batch.pointee.bytes.count
      return bytes <= Self.groupBytes && !commit.isAlone
    }
    waiting.removeFirst(group.count)
    return Array(group)
  }

  /// Ends the leader's turn, and returns the writer to wake, if there is one.
  fileprivate mutating func endTurn() -> WaitingCommit? {
    guard let first = waiting.first else {
      isLed = false
      return nil
    }
    if first.isNext {
      waiting.removeFirst()
      first.state = .isSettled
      return first
    }
    isLed = false
    guard first.state == .waits else { return nil }
    first.state = .isWoken
    return first
  }

  /// Ends the wait of a writer that was woken, if its batch was applied or it can lead.
  ///
  /// - Returns: Whether the wait has ended. Unless the batch was applied, the writer leads then.
  fileprivate mutating func endWait(of commit: WaitingCommit) -> Bool {
    if commit.state == .isSettled { return true }
    commit.state = .waits
    guard !isLed else { return false }
    isLed = true
    waiting.removeAll { $0 === commit }
    return true
  }

  /// Fails the waiting batches after writing was disabled.
  fileprivate mutating func turnAway(because cause: String) {
    for commit in waiting where !commit.isAlone {
      commit.outcome = .failure(.writesDisabled(cause: cause))
      commit.state = .isSettled
      commit.wake()
    }
    waiting.removeAll { !$0.isAlone }
  }
}

// @unchecked: there is one leader at a time, and it alone uses the writer.
extension CommitQueue: @unchecked Sendable {}

/// A thread that waits in line: with a batch, or to use the writer alone.
final class WaitingCommit {
  enum State {
    case waits
    /// It was woken to lead, and another thread may still be faster.
    case isWoken
    /// Its batch was applied, or its writer leads.
    case isSettled
  }

  /// How often a thread looks whether it was woken, before it sleeps.
  private static let looks = 100

  let batch: UnsafeMutablePointer<WriteBatch>
  let synced: Bool
  /// Whether it waits to use the writer, without a batch for a leader to apply.
  let isAlone: Bool
  /// Whether no other writer may lead before it.
  ///
  /// This and ``state`` are protected by the lock of the line.
  var isNext: Bool
  var state = State.waits
  /// The outcome of the batch; nil if its writer is the next leader.
  ///
  /// It is set before the state is, and read by the waiter alone.
  var outcome: Result<Commit, StoreError>?
  private let wasWoken = Atomic(false)
  private let wakeUp = DispatchSemaphore(value: 0)

  init(batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, isAlone: Bool) {
    self.batch = batch
    self.synced = synced
    self.isAlone = isAlone
    isNext = isAlone
  }

  /// Waits for a call of ``wake()``; for each call, one wait ends.
  ///
  /// Most writes end sooner than a thread is put to sleep and woken, but for those that sync.
  func wait() {
    var looks = synced ? 0 : Self.looks
    while looks > 0, !wasWoken.load(ordering: .relaxed) {
      clarder_pause()
      looks -= 1
    }
    wakeUp.wait()
  }

  func wake() {
    wakeUp.signal()
    wasWoken.store(true, ordering: .relaxed)
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
