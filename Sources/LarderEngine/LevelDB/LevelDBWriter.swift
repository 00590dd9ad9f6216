import CLarderLevelDB
import LarderBytes

/// Applies groups of batches to a LevelDB database, for the leader of the commit queue.
///
/// After a failed append, LevelDB continues to acknowledge writes into a log that recovery cannot
/// read. So a failure disables writing before another writer can get in. The next write tries to
/// enable it again by starting a new log, for which LevelDB writes its memory into a table.
struct LevelDBWriter: ~Copyable {
  private var database: OpaquePointer
  // Nil if writes are refused.
  private var sequence: CommitSequence?
  private let readOnlyCause: String?
  private var logs: LogFiles
  private var reserve: Reserve
  private let writeCount: WriteCount
  /// Why the last write failed; nil if it succeeded.
  private(set) var disabledCause: String?
  /// Whether only reopening the database can make it writable again.
  private(set) var needsReopening = false
  /// The participant in the commits, if there is one.
  var participant: (any CommitParticipant)?

  // Values that conditions are checked against are read into this.
  private var value = ValueBuffer()

  init(
    of database: OpaquePointer, logs: LogFiles, reserve: Reserve, counting writeCount: WriteCount,
    readOnlyCause: String?
  ) throws(EngineError) {
    self.database = database
    self.logs = logs
    self.reserve = reserve
    self.writeCount = writeCount
    self.readOnlyCause = readOnlyCause
    guard readOnlyCause == nil else { return }
    sequence = try CommitSequence(
      resumingAfter: try ValueBuffer.value(under: CommitSequence.key, of: database))
    restoreReserve()
  }

  /// Notes that the database is about to be closed, and usable again after ``resume(with:)``.
  mutating func requireReopening() { needsReopening = true }

  /// Whether the reserve is spent, in a directory that is in place.
  var isReserveSpent: Bool {
    do throws(EngineError) {
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
    logs.mayHaveRotated()
    disabledCause = nil
    needsReopening = false
  }

  /// Whether LevelDB's memory would fit on the disk as a table, once files of `deletedBytes` are
  /// deleted.
  ///
  /// With `forFreeing`, the reserve is used if needed.
  mutating func hasRoom(
    forFreeing: Bool, after deletedBytes: Int = 0
  ) throws(EngineError) -> Bool {
    if try logs.hasRoom(after: deletedBytes) { return true }
    guard forFreeing, try reserve.use() else { return false }
    return try logs.hasRoom(after: deletedBytes)
  }

  /// The same as ``hasRoom(forFreeing:after:)``; false if the free room cannot be found out.
  mutating func seemsToHaveRoom(forFreeing: Bool, after deletedBytes: Int = 0) -> Bool {
    do throws(EngineError) {
      return try hasRoom(forFreeing: forFreeing, after: deletedBytes)
    } catch {
      return false
    }
  }

  /// Applies the leader's batch and those of others as one write.
  ///
  /// A batch whose conditions cannot be read fails alone; batches that are written together fail
  /// together. The outcomes of the others are stored in them, the leader's is returned or thrown.
  mutating func commit(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, with others: [WaitingCommit]
  ) throws(EngineError) -> Commit {
    do throws(EngineError) {
      if let readOnlyCause { throw .readOnly(cause: readOnlyCause) }
      if disabledCause != nil || reserve.isSpent {
        try makeWritable(
          forFreeing: batch.pointee.freesRoom || others.contains { $0.batch.pointee.freesRoom })
      }
      try logs.prepareToGrow()
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
    var failure: EngineError?
    do throws(EngineError) {
      own = try stage(batch, in: &group)
    } catch {
      failure = error
    }
    for other in others {
      do throws(EngineError) {
        other.outcome = .success(try stage(other.batch, in: &group))
      } catch {
        other.outcome = .failure(error)
      }
    }
    if let reservation = group.reservation { stage(reservation) }
    if needs.counting, !group.isEmpty { stageContribution() }

    let isSynced =
      synced || group.reservation != nil || others.contains { $0.synced }
    if isSynced || !group.isEmpty {
      do throws(EngineError) {
        try write(synced: isSynced, reservation: group.reservation)
        if needs.counting { participant?.ended(didCommit: true) }
      } catch {
        if needs.counting { participant?.ended(didCommit: false) }
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
  private mutating func write(synced: Bool, reservation: UInt64?) throws(EngineError) {
    defer { writeCount.increase() }
    do throws(EngineError) {
      try check(clarder_commit(database, synced))
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
  private mutating func synchronizeOlderLogs() throws(EngineError) {
    do throws(EngineError) {
      try logs.synchronizeOlder()
    } catch {
      needsReopening = true
      throw error
    }
  }

  /// Skips all commit sequences up to `sequence`, which copied records carry already.
  mutating func skipSequences(through sequence: UInt64) { self.sequence?.skip(through: sequence) }

  /// Throws the failure of a compaction in the background, if there was one.
  ///
  /// Also throws if the directory is not in place.
  mutating func reportFailure() throws(EngineError) {
    try logs.requireInPlace()
    if let disabledCause { throw .writesDisabled(cause: disabledCause) }
    logs.mayHaveRotated()
    do throws(EngineError) {
      try check(clarder_commit(database, false))
    } catch {
      disabledCause = "\(error)"
      throw error
    }
  }

  /// The end of the last intact log record; nil if a failed write may have left part of a record.
  ///
  /// Throws if the directory is not in place.
  func endOfLogs() throws(EngineError) -> LogPosition? {
    try logs.requireInPlace()
    return disabledCause == nil ? try logs.end() : nil
  }
}

// MARK: - After a failure

extension LevelDBWriter {
  /// Starts a new log if the last write failed.
  ///
  /// Acknowledged writes are in LevelDB's memory, which becomes a table before the new log is used.
  /// The failed write is in neither, so from then on it has no effect. (If it did get into memory
  /// and failed later, the database is reopened instead.)
  private mutating func makeWritable(forFreeing: Bool) throws(EngineError) {
    if reserve.isSpent { restoreReserve() }
    guard let cause = disabledCause else { return }
    guard !needsReopening, try hasRoom(forFreeing: forFreeing) else {
      throw .writesDisabled(cause: cause)
    }
    let old = try logs.numbers().last
    clarder_renew_log(database)
    do throws(EngineError) {
      // LevelDB does not report that it could not create a log.
      guard try logs.numbers().last != old else { throw .io("no new log could be created") }
      try check(clarder_commit(database, false))
    } catch {
      needsReopening = true
      throw .writesDisabled(cause: cause)
    }
    logs.mayHaveRotated()
    disabledCause = nil
  }
}

// MARK: - Staging

extension LevelDBWriter {
  /// Checks a batch's conditions against all batches before it, stamps it, and stages its rows.
  private mutating func stage(
    _ batch: UnsafeMutablePointer<WriteBatch>, in group: inout CommitGroup
  ) throws(EngineError) -> Commit {
    guard !reserve.isSpent || batch.pointee.freesRoom || batch.pointee.isEmpty else {
      throw .diskFull
    }
    let failed = try failedRequirements(of: batch, in: group)
    if let participant {
      participant.willWrite(batch.pointee, without: failed)
      batch.pointee.failedInWrite = failed
    }
    guard batch.pointee.hasRow(without: failed) else { return Commit(sequence: 0, failed: failed) }
    if group.isCounted, let participant {
      defer { shrinkValue() }
      let refusal = group.admit(batch.pointee, without: failed, by: participant) {
        storedBytes(under: $0)
      }
      if let refusal { throw .refused(refusal) }
    }
    guard let (number, reservation) = sequence?.next() else {
      return Commit(sequence: 0, failed: failed)
    }
    if let reservation { group.reservation = reservation }
    batch.pointee.stamp(with: number)
    stage(batch.pointee, without: failed)
    group.isEmpty = false
    if !group.isAlone { group.members.append(CommitGroup.Member(batch: batch, failed: failed)) }
    return Commit(sequence: number, failed: failed)
  }

  private mutating func failedRequirements(
    of batch: UnsafeMutablePointer<WriteBatch>, in group: CommitGroup
  ) throws(EngineError) -> Set<Int> {
    guard !batch.pointee.requirements.isEmpty else { return [] }
    if group.isEmpty, batch.pointee.writeCountBeforeReading == writeCount.now { return [] }
    defer { shrinkValue() }
    var failed: Set<Int> = []
    for (index, requirement) in batch.pointee.requirements.enumerated() {
      if case .valid(let ticket) = requirement.condition {
        if ticket.isRevoked { failed.insert(index) }
        continue
      }
      let exists: Bool
      do throws(EngineError) {
        exists = try read(requirement.key, in: group)
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
    }
    return failed
  }

  /// Reads the value that `key` has once the staged batches are applied.
  ///
  /// False if there is none.
  private mutating func read(
    _ key: [UInt8], in group: CommitGroup
  ) throws(EngineError) -> Bool {
    if let found = group.read(key, into: &value) { return found }
    return try value.read(key.span.bytes, from: database)
  }

  private mutating func stage(_ batch: borrowing WriteBatch, without failed: Set<Int>) {
    batch.bytes.withBytes { bytes in
      for row in batch.rows where row.isKept(without: failed) {
        let key = clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.key]))
        if row.kind == .remove {
          clarder_stage_removal(database, key)
        } else {
          let value = clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.value]))
          clarder_stage_put(database, key, value)
        }
      }
    }
    logs.willGrow(rows: batch.rows.count, bytes: batch.bytes.count)
    if reserve.willGrow(bytes: batch.bytes.count) { restoreReserve() }
  }

  /// The size of a key and its value; 0 if there is no entry, nil if it cannot be read.
  private mutating func storedBytes(under key: UnsafeRawBufferPointer) -> Int? {
    do throws(EngineError) {
      return try value.read(key.bytes, from: database) ? key.count + value.count : 0
    } catch {
      return nil
    }
  }

  /// Frees the memory of a long value after the batch that needed it.
  private mutating func shrinkValue() {
    if value.count > Self.keptBytes { value = ValueBuffer() }
  }

  private static let keptBytes = 1 << 20

  private mutating func stageContribution() {
    var contribution = WriteBatch()
    participant?.contribute(to: &contribution)
    stage(contribution, without: [])
  }

  private mutating func restoreReserve() {
    reserve.restore(storeBytes: clarder_approximate_bytes(database, clarder_slice(), nil))
  }

  private func stage(_ reservation: UInt64) {
    withUnsafeBytes(of: reservation.littleEndian) { ceiling in
      CommitSequence.key.withUnsafeBytes { key in
        clarder_stage_put(database, clarder_slice(key), clarder_slice(ceiling))
      }
    }
  }
}
