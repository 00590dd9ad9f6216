// Payloads that were overwritten or deleted stay in their segments until a collection gives back
// the room:
//
//   1. A scan of all rows adds up the live bytes of each segment that is no longer appended to.
//      Only the rows decide what is live: no counts are kept that a crash could make wrong.
//   2. The live payloads of segments that are at least half dead, and of small ones if there are
//      many, are appended to the newest segment, and their rows changed by the leader, if they
//      still name the same payload.
//   3. Now some segments are named by no row. They are deleted at a durable point: the newest
//      segment is synced, and the rows in LevelDB's log are written into a table, with its name.
//      Before that, a power loss could bring back rows that name them; and recovery would take a
//      row of a log for the end of the logs if its segment is missing.
//   4. A segment is deleted only when no iterator reads a state from before that point.
//
// A row that names a segment was written while the segment was appended to, or keeps the payload of
// such a row. So no payload begins to be live during a collection. A collection that is interrupted
// leaves segments, which the next one finds.

import CLarder
import Dispatch

/// What was written to the segments of a store, and given back, since it was opened.
package struct SegmentTotals: Hashable, Sendable {
  /// The segments that the last collection has left, without the newest one, and their size.
  package var segments = 0
  package var byteCount = 0
  /// The bytes in them that rows named when the last collection began.
  package var liveBytes = 0
  /// The bytes that were appended, those that collections copied included.
  package var appendedBytes = 0
  /// The bytes that collections have copied.
  package var copiedBytes = 0
  /// The bytes of the segments that collections have deleted.
  package var deletedBytes = 0

  package init() {}
}

/// The state that collections keep from one to the next.
struct SegmentCollection {
  /// Segments that no row names, but that iterators of an earlier generation may read.
  var condemned: [(segment: UInt32, generation: UInt64)] = []
  var totals = SegmentTotals()
}

extension LevelDBEngine {
  /// The rows that are moved under one turn of the leader.
  private static let movedRows = 16
  private static let movedBytes = 1 << 20

  /// Gives back the room of payloads that no row names.
  ///
  /// A routine collection returns at once if another one is under way; a complete one waits for it.
  /// On a full disk it may use the reserve, as a removal does, and it reopens the database if a
  /// compaction has failed for lack of room.
  ///
  /// - Parameters:
  ///   - effort: How much is copied to give back room.
  ///   - proceed: Called after each piece that was copied, with the bytes that were copied and that
  ///     are to be copied in all. If it returns false, the collection ends there.
  /// - Throws: ``StoreError/corrupt(_:)`` if a row could not be read: nothing is deleted then.
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``, ``StoreError/writesDisabled(cause:)``,
  ///   ``StoreError/closed``. What was done stays done, and the next call continues. A routine
  ///   collection that finds no room for its copies still deletes the dead segments, and does not
  ///   throw.
  /// - Complexity: One step for each row, two if payloads are copied. For each payload copied, one
  ///   read and one lookup; an append for 16 of them. Some fsyncs. On a full disk, up to five times
  ///   that.
  package func collectSegments(
    _ effort: CollectionEffort, while proceed: (_ copied: Int, _ total: Int) -> Bool
  ) throws(StoreError) {
    guard let segments, options.readOnlyCause == nil else { return }
    for _ in 1..<Self.triesToFreeRoom {
      let failure: StoreError
      do throws(StoreError) {
        return try collectOnce(effort, in: segments, while: proceed)
      } catch .diskFull {
        failure = .diskFull
      } catch .writesDisabled(let cause) {
        failure = .writesDisabled(cause: cause)
      }
      var batch = WriteBatch()
      batch.mayUseReserve = true
      _ = try retry(&batch, synced: false, after: failure)
    }
    try collectOnce(effort, in: segments, while: proceed)
  }

  private func collectOnce(
    _ effort: CollectionEffort, in segments: SegmentFiles, while proceed: (Int, Int) -> Bool
  ) throws(StoreError) {
    if effort == .complete {
      return try collection.withLock { collection throws(StoreError) in
        try collect(&collection, effort, in: segments, while: proceed)
      }
    }
    try collection.withLockIfAvailable { collection throws(StoreError) in
      try collect(&collection, effort, in: segments, while: proceed)
    }
  }

  package var segmentTotals: SegmentTotals {
    // Not a collection under way: it holds its lock for long.
    var totals = totals.withLock { $0 }
    totals.appendedBytes = segments?.appendedBytes ?? 0
    return totals
  }

  package func collectSegmentsSoon() {
    guard let segments, options.collectsInBackground else { return }
    do throws(StoreError) {
      // Less than half a segment is not worth a scan.
      let (closed, current) = try sizes(of: segments)
      let byteCount = closed.values.reduce(current?.byteCount ?? 0, +)
      guard byteCount >= options.segmentBytes / 2 else { return }
    } catch {
      // A collection would fail, too.
      return
    }
    schedule.ask()
    collectIfDue(mayWait: false)
  }

  /// Collects on a thread of its own and waits for it, because the disk is full.
  ///
  /// - Returns: Whether a write may be tried again. If nothing was written since that happened
  ///   before, there is nothing more to give back.
  func makeRoom() -> Bool {
    guard segments != nil, options.collectsInBackground,
      schedule.askForRoom(writes: writes.now)
    else { return false }
    collectIfDue(mayWait: false)
    collectionThread.wait()
    schedule.didWaitForRoom(writes: writes.now)
    return true
  }

  /// Collects on a thread of its own, if enough has changed since the last time.
  ///
  /// If that is far behind, a caller that `mayWait` waits for it a moment.
  func collectIfDue(mayWait: Bool) {
    guard options.collectsInBackground, let segments else { return }
    let changed = segments.changedBytes
    if mayWait, schedule.isBehind(changed: changed) {
      let wait = DispatchTimeInterval.milliseconds(CollectionSchedule.longestWait)
      _ = collectionThread.wait(timeout: .monotonicNow + wait)
    }
    guard schedule.begin(changed: changed) else { return }
    collectionThread.enter()
    let isStarted = startThread { [collectionThread, weak self] in
      while self?.collectInBackground() == true {}
      collectionThread.leave()
    }
    guard isStarted else {
      schedule.cancel()
      return collectionThread.leave()
    }
  }

  /// Returns whether another collection is due.
  private func collectInBackground() -> Bool {
    do throws(StoreError) {
      try collectSegments()
    } catch {
      // No caller waits for it. Reads or writes that meet the same failure throw it, and the next
      // collection tries again.
    }
    return schedule.continues(after: segmentTotals, changed: segments?.changedBytes ?? 0)
  }

  package func waitForBackgroundWork() {
    // Until the thread holds no reference to the engine.
    collectionThread.wait()
  }

  package func endBackgroundWork() {
    schedule.stop(because: .closed)
    waitForBackgroundWork()
  }

  /// Frees an iterator whose cursor ends; a collection deletes the segments that only it has kept.
  func release(_ iterator: LevelDBIterator) {
    guard owner.isCurrent else { return }
    database.release(iterator)
    if askIfReleased() { collectIfDue(mayWait: false) }
  }

  /// Asks for a collection if segments wait, and no iterator keeps them any longer.
  private func askIfReleased() -> Bool {
    guard let generation = schedule.waitedGeneration,
      generation <= database.oldestGeneration ?? .max
    else { return false }
    schedule.waits(for: nil)
    schedule.ask()
    return true
  }
}

// MARK: - Collecting

extension LevelDBEngine {
  private func collect(
    _ collection: inout SegmentCollection, _ effort: CollectionEffort, in segments: SegmentFiles,
    while proceed: (Int, Int) -> Bool
  ) throws(StoreError) {
    defer { totals.withLock { $0 = collection.totals } }
    schedule.waits(for: nil)
    var (sizes, current) = try sizes(of: segments)
    var live: [UInt32: Int] = [:]
    try forEachSeparatedRow(in: segments) { key, row, _ throws(StoreError) in
      live[row.pointer.segment, default: 0] +=
        FrameHeader.byteCount + key.byteCount + row.pointer.payloadCount
    }
    let condemned = Set(collection.condemned.map(\.segment))
    let dead = Set(sizes.keys.filter { live[$0] == nil && !condemned.contains($0) })
    // Before the newest segment is ended: payloads may be appended to it since the scan began.
    var sparse = self.sparse(effort, sizes, live)
    if let current, let ended = try end(current, effort, live: live[current.number] ?? 0) {
      sizes[current.number] = ended
      sparse.insert(current.number)
    }
    collection.totals.segments = sizes.count
    collection.totals.byteCount = sizes.values.reduce(0, +)
    collection.totals.liveBytes = sizes.keys.reduce(0) { $0 + live[$1, default: 0] }

    var progress = CopyProgress(total: sparse.reduce(0) { $0 + live[$1, default: 0] })
    var failure: StoreError?
    var emptied: Set<UInt32> = []
    do throws(StoreError) {
      emptied = try move(sparse, in: segments, &progress, while: proceed)
    } catch .diskFull {
      // Deleting the dead segments may make room for the next collection.
      failure = .diskFull
    }
    collection.totals.copiedBytes += progress.copied
    let unnamed = dead.union(emptied)
    if !unnamed.isEmpty {
      try makeDurable()
      let generation = database.beginGeneration()
      collection.condemned += unnamed.sorted().map { ($0, generation) }
    }
    try delete(&collection, sizes, in: segments)
    schedule.waits(for: collection.condemned.map(\.generation).min())
    // An iterator that has ended since the deletions did not know that they wait.
    _ = askIfReleased()
    if effort == .complete, let failure { throw failure }
  }

  /// The closed segments whose live payloads are to be copied.
  private func sparse(
    _ effort: CollectionEffort, _ sizes: [UInt32: Int], _ live: [UInt32: Int]
  ) -> Set<UInt32> {
    var sparse = Set(
      sizes.filter { effort.copies(live: live[$0.key, default: 0], of: $0.value) }.keys)
    let small = sizes.filter { $0.value < options.segmentBytes / CollectionSchedule.manySegments }
    if small.count >= CollectionSchedule.manySegments { sparse.formUnion(small.keys) }
    return sparse.intersection(live.keys)
  }

  /// The sizes of the segments that no payload is appended to any more, and the newest segment.
  ///
  /// All rows that name closed segments are in the database.
  private func sizes(
    of segments: SegmentFiles
  ) throws(StoreError) -> (closed: [UInt32: Int], current: SegmentWriter.Place?) {
    // Listed first: a segment that is begun meanwhile has a higher number.
    let numbers = try segments.numbers()
    let current = try withWriterEntered { writer throws(StoreError) in
      try writer.reportFailure()
      return writer.currentSegment
    }
    var sizes: [UInt32: Int] = [:]
    for number in numbers where number < current?.number ?? .max {
      sizes[number] = try options.files.byteCount(of: segments.path(of: number)) ?? 0
    }
    return (sizes, current)
  }

  /// Ends the newest segment if its live payloads are to be copied.
  ///
  /// A routine collection leaves it until a quarter of it is full.
  ///
  /// - Returns: Its size; nil if it was not ended.
  private func end(
    _ current: SegmentWriter.Place, _ effort: CollectionEffort, live: Int
  ) throws(StoreError) -> Int? {
    guard current.byteCount > SegmentHeader.byteCount,
      effort.copies(live: live, of: current.byteCount),
      effort == .complete || current.byteCount >= options.segmentBytes / 4
    else { return nil }
    return try withWriterEntered { writer throws(StoreError) in
      try writer.endSegment(current.number)
    }
  }

  /// Deletes the condemned segments that no iterator can read.
  private func delete(
    _ collection: inout SegmentCollection, _ sizes: [UInt32: Int], in segments: SegmentFiles
  ) throws(StoreError) {
    let oldest = database.oldestGeneration ?? .max
    let sync = try withWriterEntered { $0.segmentSync }
    while let index = collection.condemned.firstIndex(where: { $0.generation <= oldest }) {
      try schedule.checkRunning()
      try checkOpen()
      let number = collection.condemned[index].segment
      try segments.remove(number)
      collection.condemned.remove(at: index)
      collection.totals.segments -= 1
      collection.totals.byteCount -= sizes[number] ?? 0
      collection.totals.deletedBytes += sizes[number] ?? 0
      // On a volume that discards freed blocks, the next fsync waits for that. Here it is this one,
      // and not one of a write after many deletions.
      try sync?.synchronizeNames()
    }
  }

  /// Writes all rows of the logs into tables that survive a power loss, with their frames.
  private func makeDurable() throws(StoreError) {
    // Outside of the queue, so that writers do not wait for most of it.
    let sync = try withWriterEntered { $0.beginSegmentSync() }
    do throws(StoreError) {
      try sync?.wait()
    } catch {
      try withWriterEntered { $0.noteFailedSync(error) }
      throw error
    }
    try withWriterEntered { writer throws(StoreError) in
      // If the table found no room, the database would have to be reopened.
      guard try writer.hasRoom(forFreeing: true) else { throw .diskFull }
      try writer.beginCompaction()
    }
    let newest = try LogSurvey.numbers(in: path, options.files).last
    try enter()
    clarder_renew_log(database.pointer)
    leave()
    try withWriterEntered { writer throws(StoreError) in try writer.endCompaction() }
    // LevelDB does not report that it could not create a log.
    let oldest = try LogSurvey.numbers(in: path, options.files).first
    guard let newest, let oldest, oldest > newest else {
      throw .io("the rows of a log were not written into a table")
    }
  }

  private func withWriterEntered<R: Sendable>(
    _ body: (inout LevelDBWriter) throws(StoreError) -> R
  ) throws(StoreError) -> R {
    try enter()
    defer { leave() }
    return try queue.withWriter(body)
  }

  /// Calls `body` with each row of a separated value: its key, its place, and its bytes.
  private func forEachSeparatedRow(
    in segments: SegmentFiles,
    _ body: (_ key: RawSpan, _ row: SeparatedRow, _ value: RawSpan) throws(StoreError) -> Void
  ) throws(StoreError) {
    let cursor = try cursor(
      over: EngineRange(prefix: [segments.format.keySpace]), lending: .rows)
    while try cursor.next() {
      try schedule.checkRunning()
      try cursor.withEntry { key, value throws(StoreError) in
        let row = key.withUnsafeBytes { key in
          value.withUnsafeBytes { SeparatedRow($0, under: key, by: segments.format) }
        }
        if let row { try body(key, row, value) }
      }
    }
  }
}

// MARK: - Moving payloads

/// The row of a separated value, and the payload.
struct MovedRow {
  let key: [UInt8]
  let pointer: FramePointer
  let payload: [UInt8]
}

/// The bytes that a collection copies.
private struct CopyProgress {
  let total: Int
  var copied = 0
  var isCancelled = false

  init(total: Int) { self.total = total }
}

extension LevelDBEngine {
  /// Moves the payloads of segments into the newest one.
  ///
  /// - Returns: The segments that no row names any more: none if the collection is to end. A
  ///   damaged payload stays where it is.
  private func move(
    _ sparse: Set<UInt32>, in segments: SegmentFiles, _ progress: inout CopyProgress,
    while proceed: (Int, Int) -> Bool
  ) throws(StoreError) -> Set<UInt32> {
    guard !sparse.isEmpty else { return [] }
    var emptied = sparse
    var rows: [MovedRow] = []
    var byteCount = 0
    var value = ValueBuffer()
    try forEachSeparatedRow(in: segments) { key, row, bytes throws(StoreError) in
      guard sparse.contains(row.pointer.segment), !progress.isCancelled else { return }
      value.assign(bytes)
      guard case .read = try segments.resolve(&value, under: key),
        value.withBytes({ segments.format.stamp.isIntact($0, key: key) })
      else {
        emptied.remove(row.pointer.segment)
        return
      }
      let payload = value.withBytes { [UInt8]($0.extracting(droppingFirst: row.headCount)) }
      rows.append(MovedRow(key: [UInt8](key), pointer: row.pointer, payload: payload))
      byteCount += payload.count
      guard rows.count >= Self.movedRows || byteCount >= Self.movedBytes else { return }
      try move(rows)
      progress.copied += byteCount
      (rows, byteCount) = ([], 0)
      progress.isCancelled = !proceed(progress.copied, progress.total)
    }
    try move(rows)
    progress.copied += byteCount
    return progress.isCancelled ? [] : emptied
  }

  private func move(_ rows: [MovedRow]) throws(StoreError) {
    guard !rows.isEmpty else { return }
    try withWriterEntered { writer throws(StoreError) in try writer.move(rows) }
  }
}
