import CLarder

/// Applies groups of batches to a LevelDB database, for the leader of the commit queue.
///
/// After a failed append, LevelDB continues to acknowledge writes into a log that recovery cannot
/// read. So a failure disables writing before another writer can get in. The next write tries to
/// enable it again by starting a new log, for which LevelDB writes its memory into a table.
struct LevelDBWriter: ~Copyable {
  var database: OpaquePointer
  // Nil if writes are refused.
  private var sequence: CommitSequence?
  private let readOnlyCause: String?
  var logs: LogFiles
  var reserve: Reserve
  /// Nil if no value is separated.
  var segments: SegmentWriter?
  /// The number of compactions that callers have asked for and that are running.
  private var compactions = 0
  private let writeCount: WriteCount
  /// Why the last write failed; nil if it succeeded.
  private(set) var disabledCause: String?
  /// Whether only reopening the database can make it writable again.
  private(set) var needsReopening = false
  /// Whether the last write failed after its rows were appended, so that they may take effect.
  private var isInDoubt = false
  /// The participant in the commits, if there is one.
  var participant: (any CommitParticipant)?

  // Values that conditions are checked against are read into this.
  var value = ValueBuffer()
  // Rows of separated values are made in this.
  private var separated = ByteBuffer()

  init(
    of database: OpaquePointer, logs: LogFiles, reserve: Reserve,
    segments: consuming SegmentWriter?, counting writeCount: WriteCount, readOnlyCause: String?
  ) throws(StoreError) {
    self.database = database
    self.logs = logs
    self.reserve = reserve
    self.segments = segments
    self.writeCount = writeCount
    self.readOnlyCause = readOnlyCause
    guard readOnlyCause == nil else { return }
    sequence = try CommitSequence(
      resumingAfter: try ValueBuffer.value(under: CommitSequence.key, of: database))
    restoreReserve()
  }

  /// Notes that the database is about to be closed, and usable again after ``resume(with:)``.
  mutating func requireReopening() {
    needsReopening = true
    // Recovery checks the segments.
    segments?.sync.finish()
  }

  /// Whether the reserve is spent, in a directory that is in place.
  var isReserveSpent: Bool {
    do throws(StoreError) {
      try logs.requireInPlace()
      return reserve.isSpent
    } catch {
      return false
    }
  }

  /// Restores the reserve once the database is closed.
  mutating func restoreReserveAfterClosing() { reserve.restore() }

  /// Continues with a database that was reopened.
  mutating func resume(with database: OpaquePointer) {
    self.database = database
    writeCount.increase()
    segments?.abandon()
    logs.didBegin()
    disabledCause = nil
    needsReopening = false
  }

  /// As ``Reserve/hasRoom(forFreeing:after:)``, in a directory that is in place.
  mutating func hasRoom(
    forFreeing: Bool, after deletedBytes: Int = 0
  ) throws(StoreError) -> Bool {
    try logs.requireInPlace()
    return try reserve.hasRoom(forFreeing: forFreeing, after: deletedBytes)
  }

  /// As ``hasRoom(forFreeing:after:)``, but false if the free room cannot be found out.
  mutating func seemsToHaveRoom(forFreeing: Bool, after deletedBytes: Int = 0) -> Bool {
    do throws(StoreError) {
      return try hasRoom(forFreeing: forFreeing, after: deletedBytes)
    } catch {
      return false
    }
  }

  /// Applies the batches of the leader and of others as one write.
  ///
  /// A batch whose conditions cannot be read fails alone; batches that are written together fail
  /// together. The outcomes of the others are stored in them, the leader's is returned or thrown.
  mutating func commit(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, with others: [WaitingCommit]
  ) throws(StoreError) -> Commit {
    do throws(StoreError) {
      if let readOnlyCause { throw .readOnly(cause: readOnlyCause) }
      if disabledCause != nil || reserve.isSpent {
        try makeWritable(
          forFreeing: batch.pointee.freesRoom || others.contains { $0.batch.pointee.freesRoom })
      }
      try logs.prepareToGrow()
      try beginLogIfNeeded()
    } catch {
      for other in others { other.outcome = .failure(error) }
      throw error
    }
    defer {
      endWriting(&batch.pointee)
      for other in others { endWriting(&other.batch.pointee) }
    }
    let needs = participant?.needs ?? (counting: false, reports: false)
    var group = CommitGroup(isAlone: others.isEmpty, isCounted: needs.counting)
    var own = Commit(sequence: 0)
    var failure: StoreError?
    do throws(StoreError) {
      own = try stage(batch, in: &group)
    } catch {
      failure = error
    }
    for other in others {
      do throws(StoreError) {
        other.outcome = .success(try stage(other.batch, in: &group))
      } catch {
        other.outcome = .failure(error)
      }
    }
    if let error = group.failure {
      // No row of the group is applied; frames that were appended are named by none.
      clarder_discard(database)
      noteFailedSync(error)
      if needs.counting { participant?.ended(didCommit: false) }
      for other in others { other.outcome = other.outcome?.flatMap { _ in .failure(error) } }
      throw failure ?? error
    }
    group.reservation.map { stagePut(of: $0, under: CommitSequence.key, in: database) }

    let isSynced =
      synced || group.reservation != nil || others.contains { $0.synced }
    if isSynced || !group.isEmpty {
      do throws(StoreError) {
        if needs.counting, !group.isEmpty { try stageContribution() }
        try write(synced: isSynced, reservation: group.reservation)
        if group.removedBytes > 0 { segments?.reader.didRemove(group.removedBytes) }
        if needs.counting { participant?.ended(didCommit: true) }
      } catch {
        if needs.counting { participant?.ended(didCommit: false) }
        if isInDoubt {
          batch.pointee.isInDoubt = true
          for other in others { other.batch.pointee.isInDoubt = true }
        }
        for other in others {
          other.outcome = other.outcome?.flatMap { _ in .failure(error) }
        }
        throw failure ?? error
      }
      if needs.reports { report(batch, own, with: others) }
    }
    if let failure { throw failure }
    return own
  }

  /// Notifies the participant that the write of a batch has ended, if it knows of the batch.
  private func endWriting(_ batch: inout WriteBatch) {
    guard let failed = batch.failedInWrite else { return }
    batch.failedInWrite = nil
    participant?.didWrite(batch, without: failed)
  }

  /// Reports the batches that were applied to the participant.
  ///
  /// A batch that failed, or of which no row was applied, has no sequence.
  private func report(
    _ batch: UnsafeMutablePointer<WriteBatch>, _ own: Commit, with others: [WaitingCommit]
  ) {
    guard let participant else { return }
    if own.sequence > 0 { participant.committed(batch.pointee, own) }
    for other in others {
      guard case .success(let commit)? = other.outcome, commit.sequence > 0 else { continue }
      participant.committed(other.batch.pointee, commit)
    }
  }

  /// Writes the staged rows, `reservation` included.
  mutating func write(synced: Bool, reservation: UInt64?) throws(StoreError) {
    defer { writeCount.increase() }
    isInDoubt = false
    do throws(StoreError) {
      // A compaction of the memory takes the rows of this write as soon as they are in it.
      if synced || compactions > 0 { try synchronizeSegments() }
      stageSyncedPlace(always: synced)
      try check(clarder_commit(database, synced, &isInDoubt))
      if synced { try synchronizeOlderLogs() }
      if let reservation { sequence?.didReserve(reservation) }
      // Before other writes take the remaining room.
      if reserve.isSpent { restoreReserve() }
    } catch {
      disabledCause = "\(error)"
      throw error
    }
  }

  /// Makes the writes in older logs durable.
  ///
  /// If it fails, LevelDB has applied the current write nevertheless. State in memory that depends
  /// on the write must then be read again, which happens when the database is reopened.
  private mutating func synchronizeOlderLogs() throws(StoreError) {
    do throws(StoreError) {
      try logs.synchronizeOlder()
    } catch {
      (isInDoubt, needsReopening) = (true, true)
      throw error
    }
  }

  /// Skips all commit sequences up to `sequence`, which copied records carry already.
  mutating func skipSequences(through sequence: UInt64) { self.sequence?.skip(through: sequence) }

  /// Throws the failure of a compaction in the background, if there was one.
  ///
  /// Also throws if the directory is not in place.
  mutating func reportFailure() throws(StoreError) {
    try logs.requireInPlace()
    if let disabledCause { throw .writesDisabled(cause: disabledCause) }
    logs.mayHaveRotated()
    do throws(StoreError) {
      try beginLogIfNeeded()
      try check(clarder_commit(database, false, nil))
    } catch {
      disabledCause = "\(error)"
      throw error
    }
  }

  /// The end of the last intact log record; nil if a failed write may have left part of a record.
  ///
  /// Throws if the directory is not in place.
  func endOfLogs() throws(StoreError) -> LogPosition? {
    try logs.requireInPlace()
    return disabledCause == nil ? try logs.end() : nil
  }
}

// MARK: - Segments

extension LevelDBWriter {
  /// Waits until all frames are on the device, wherever a row may leave the newest log.
  ///
  /// If it fails, rows in the log may name frames that the device has lost. They must be checked,
  /// which happens when the database is reopened.
  private mutating func synchronizeSegments() throws(StoreError) {
    do throws(StoreError) {
      try segments?.synchronize()
    } catch {
      noteFailedSync(error)
      throw error
    }
  }

  /// Adds to the write how far the segments are on the device, if recovery may need to know.
  private mutating func stageSyncedPlace(always: Bool) {
    guard let place = segments?.placeToNote(always: always) else { return }
    place.stage(in: database)
    logs.willGrow(rows: 2, bytes: SyncedPlace.rowBytes)
  }

  /// Syncs the segment if LevelDB's next write may begin a new log, and begins one.
  ///
  /// LevelDB decides by the memory that is in use before the write. Without a new log, each write
  /// would sync until LevelDB finds its memory full.
  mutating func beginLogIfNeeded() throws(StoreError) {
    guard segments?.hasUnsynced == true, logs.mayBeFull else { return }
    do throws(StoreError) {
      try synchronizeSegments()
      try check(clarder_begin_log(database))
    } catch {
      disabledCause = "\(error)"
      throw error
    }
    logs.didBegin()
  }

  /// Prepares for a compaction that a caller has asked for, which begins with a new log.
  mutating func beginCompaction() throws(StoreError) {
    try reportFailure()
    try synchronizeSegments()
    compactions += 1
  }

  /// Ends it, and throws its failure.
  mutating func endCompaction() throws(StoreError) {
    compactions -= 1
    try reportFailure()
  }

  /// Begins to sync the segments; the caller waits for it, outside of the queue.
  mutating func beginSegmentSync() -> SegmentSync? {
    segments?.beginSync()
    return segmentSync
  }

  /// Nil if no value is separated.
  var segmentSync: SegmentSync? {
    switch segments {
    case .some(let segments): segments.sync
    case nil: nil
    }
  }

  /// The segment that is appended to, if one was begun.
  var currentSegment: SegmentWriter.Place? {
    switch segments {
    case .some(let segments): segments.currentPlace
    case nil: nil
    }
  }

  /// Disables writing if the failure is one of a sync of the segment.
  mutating func noteFailedSync(_ error: StoreError) {
    guard segments?.sync.hasFailed == true else { return }
    disabledCause = "\(error)"
    needsReopening = true
  }

  /// Seals the segment before a closing or a copy; with `noting`, notes it in the log if it fits.
  mutating func sealSegment(noting: Bool) {
    do throws(StoreError) {
      try segments?.seal()
      guard noting, segments?.hasUnnotedRows == true, disabledCause == nil, !reserve.isSpent,
        try hasRoom(forFreeing: false)
      else { return }
      stageSyncedPlace(always: true)
      try write(synced: false, reservation: nil)
    } catch {
      // The next opening checks its frames.
    }
  }
}

// MARK: - After a failure

extension LevelDBWriter {
  /// Starts a new log if the last write failed.
  ///
  /// Acknowledged writes are in LevelDB's memory, which becomes a table before the new log is used.
  /// The failed write is in neither, so from then on it has no effect. (If it did get into memory
  /// and failed later, the database is reopened instead.)
  private mutating func makeWritable(forFreeing: Bool) throws(StoreError) {
    if reserve.isSpent { restoreReserve() }
    guard let cause = disabledCause else { return }
    guard !needsReopening, try hasRoom(forFreeing: forFreeing) else {
      throw .writesDisabled(cause: cause)
    }
    let old = try logs.numbers().last
    do throws(StoreError) {
      try synchronizeSegments()
      clarder_renew_log(database)
      // LevelDB does not report that it could not create a log.
      guard try logs.numbers().last != old else { throw .io("no new log could be created") }
      try check(clarder_commit(database, false, nil))
    } catch {
      needsReopening = true
      throw .writesDisabled(cause: cause)
    }
    logs.didBegin()
    disabledCause = nil
  }
}

// MARK: - Staging

extension LevelDBWriter {
  /// Checks a batch's conditions against all batches before it, stamps it, and stages its rows.
  private mutating func stage(
    _ batch: UnsafeMutablePointer<WriteBatch>, in group: inout CommitGroup
  ) throws(StoreError) -> Commit {
    guard !reserve.isSpent || batch.pointee.freesRoom || batch.pointee.isEmpty else {
      throw .diskFull
    }
    let (failed, read) = try failedRequirements(of: batch, in: group)
    // Without `if let`, which would retain the participant.
    participant?.willWrite(batch.pointee, without: failed)
    if participant != nil { batch.pointee.failedInWrite = failed }
    guard batch.pointee.hasRow(without: failed) else { return Commit(sequence: 0, failed: failed) }
    if group.isCounted, let participant {
      defer { shrinkValue() }
      batch.pointee.shortage = group.admit(batch.pointee, without: failed, by: participant) {
        storedBytes(under: $0)
      }
      if let shortage = batch.pointee.shortage { throw StoreError(shortage) }
    }
    guard let (number, reservation) = sequence?.next() else {
      return Commit(sequence: 0, failed: failed)
    }
    if let reservation { group.reservation = reservation }
    batch.pointee.stamp(with: number)
    group.isEmpty = false
    group.removedBytes += removedBytes(of: batch.pointee, without: failed, read)
    do throws(StoreError) {
      try stage(batch.pointee, without: failed, sequence: number)
    } catch {
      group.failure = error
      throw error
    }
    if !group.isAlone { group.members.append(CommitGroup.Member(batch: batch, failed: failed)) }
    return Commit(sequence: number, failed: failed)
  }

  /// Also returns the size of the payloads that a batch of removals finds in segments; nil if
  /// nothing was read.
  private mutating func failedRequirements(
    of batch: UnsafeMutablePointer<WriteBatch>, in group: CommitGroup
  ) throws(StoreError) -> (failed: Set<Int>, payloadBytes: Int?) {
    guard !batch.pointee.requirements.isEmpty else { return ([], nil) }
    if group.isEmpty, batch.pointee.writeCountBeforeReading == writeCount.now { return ([], nil) }
    defer { shrinkValue() }
    var failed: Set<Int> = []
    let removes = batch.pointee.rows.first?.kind == .remove
    var payloadBytes = 0
    for (index, requirement) in batch.pointee.requirements.enumerated() {
      if let ticket = requirement.condition.ticket, ticket.isRevoked {
        failed.insert(index)
        continue
      }
      if case .valid = requirement.condition { continue }
      let exists: Bool
      do throws(StoreError) {
        exists = try read(requirement.key, in: group, for: requirement.condition)
      } catch {
        guard case .corrupt = error, let holds = requirement.condition.holdsForUnreadable else {
          throw error
        }
        if !holds { failed.insert(index) }
        continue
      }
      let holds = value.withBytes { bytes in
        requirement.condition.holds(
          for: exists ? bytes : nil, under: requirement.key.span.bytes)
      }
      if !holds { failed.insert(index) }
      if removes, holds { payloadBytes += separatedBytes(under: requirement.key) }
    }
    return (failed, payloadBytes)
  }

  /// Reads the value that `key` has once the staged batches are applied.
  ///
  /// False if there is none.
  /// The payload of a separated value is read only if the condition needs it.
  private mutating func read(
    _ key: [UInt8], in group: CommitGroup, for condition: WriteBatch.Condition
  ) throws(StoreError) -> Bool {
    if let found = group.read(key, into: &value) { return found }
    guard try value.read(key.span.bytes, from: database) else { return false }
    // A payload that is missing counts as damaged.
    if case .damaged = condition { _ = try segments?.reader.resolve(&value, under: key.span.bytes) }
    return true
  }

  /// Stages the rows of a batch, and appends the payloads that are separated to a segment.
  ///
  /// `sequence` is nil for rows that are never separated. If it throws, nothing may be written.
  private mutating func stage(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, sequence: UInt64? = nil
  ) throws(StoreError) {
    var separatedBytes = 0
    try batch.bytes.withBytes { bytes throws(StoreError) in
      for row in batch.rows where row.isKept(without: failed) {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        if row.kind == .remove {
          clarder_stage_removal(database, clarder_slice(key))
        } else if let sequence, segments?.reader.format.applies(to: row, in: bytes) == true {
          let head = UnsafeRawBufferPointer(rebasing: bytes[row.head])
          if let pointer = keptPointer(of: row, under: key, batch.requirements) {
            stageRow(key: key, head: head, pointer)
          } else {
            try stageSeparated(
              key: key, head: head, UnsafeRawBufferPointer(rebasing: bytes[row.payload]),
              sequence: sequence)
          }
          separatedBytes += row.payloadCount - FramePointer.byteCount
        } else {
          let value = UnsafeRawBufferPointer(rebasing: bytes[row.value])
          clarder_stage_put(database, clarder_slice(key), clarder_slice(value))
        }
      }
    }
    logs.willGrow(rows: batch.rows.count, bytes: batch.bytes.count - separatedBytes)
    if reserve.willGrow(bytes: batch.bytes.count) { restoreReserve() }
  }

  mutating func stageSeparated(
    key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer,
    sequence: UInt64
  ) throws(StoreError) {
    let pointer = try segments?.append(payload, under: key, sequence: sequence)
    if let pointer { stageRow(key: key, head: head, pointer) }
  }

  private mutating func stageRow(
    key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, _ pointer: FramePointer
  ) {
    guard let format = segments?.reader.format else { return }
    segments?.hasUnnotedRows = true
    separated.truncate(to: 0)
    SeparatedRow.append(head: head, pointer, by: format, to: &separated)
    separated.withBytes { clarder_stage_put(database, clarder_slice(key), clarder_slice($0)) }
  }

  /// Where the payload is that a row keeps; nil if it must be appended.
  private mutating func keptPointer(
    of row: WriteBatch.Row, under key: UnsafeRawBufferPointer,
    _ requirements: [WriteBatch.Requirement]
  ) -> FramePointer? {
    guard row.keepsPayload, let requirement = row.requirement,
      let (since, stamp) = requirements[requirement].condition.unchanged,
      let format = segments?.reader.format
    else { return nil }
    do throws(StoreError) {
      guard try value.read(key.bytes, from: database),
        value.withBytes({ stamp.sequence(of: $0) }) == since,
        let old = SeparatedRow(value.memory.bytes, under: key, by: format),
        old.pointer.payloadCount == row.payloadCount
      else { return nil }
      return old.pointer
    } catch {
      return nil
    }
  }

  /// The size of a key and its value; 0 if there is no entry, nil if it cannot be read.
  private mutating func storedBytes(under key: UnsafeRawBufferPointer) -> Int? {
    do throws(StoreError) {
      guard try value.read(key.bytes, from: database) else { return 0 }
    } catch {
      return nil
    }
    guard let format = segments?.reader.format,
      let row = SeparatedRow(value.memory.bytes, under: key, by: format)
    else { return key.count + value.count }
    return key.count + row.valueCount
  }

  /// Frees the memory of a long value after the batch that needed it.
  private mutating func shrinkValue() {
    if value.count > Self.keptBytes { value = ValueBuffer() }
  }

  private static let keptBytes = 1 << 20

  private mutating func stageContribution() throws(StoreError) {
    var contribution = WriteBatch()
    participant?.contribute(to: &contribution)
    try stage(contribution, without: [])
  }

  mutating func restoreReserve() {
    reserve.restore(storeBytes: clarder_approximate_bytes(database, clarder_slice(), nil))
  }
}
