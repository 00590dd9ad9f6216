import CLarderLevelDB

/// Applies groups of batches to a LevelDB database: what the leader of the commit queue does.
///
/// After a failed append, LevelDB goes on acknowledging writes into a log that recovery cannot
/// read. So a failure disables writing, here, before anybody else can get in. The next write tries
/// to make good: it starts a new log, which LevelDB does by writing what is in memory into a table.
struct LevelDBWriter: ~Copyable {
  private var database: OpaquePointer
  // Nil when writes are refused.
  private var sequence: CommitSequence?
  private var logs: LogFiles
  private var disabledCause: String?
  /// Whether only opening the database anew can make it writable again.
  private(set) var needsReopening = false

  // What conditions are about is read into this.
  private var value = ValueBuffer()
  private var staged: [StagedBatch] = []

  init(
    of database: OpaquePointer, logs: LogFiles, refusesWrites: Bool
  ) throws(EngineError) {
    self.database = database
    self.logs = logs
    guard !refusesWrites else { return }
    sequence = try CommitSequence(
      resumingAfter: try ValueBuffer.value(under: CommitSequence.key, of: database))
  }

  /// Goes on with a database that was opened anew.
  mutating func goOn(with database: OpaquePointer) {
    self.database = database
    logs.mayHaveRotated()
    disabledCause = nil
    needsReopening = false
  }

  /// Whether there is room to write what is in memory into a table.
  func hasRoom() throws(EngineError) -> Bool { try logs.hasRoom() }

  /// Applies the leader's batch and those of others as one write.
  ///
  /// A batch whose conditions cannot be read fails alone. What is written together fails together.
  mutating func commit(
    _ batch: UnsafeMutablePointer<WriteBatch>, synced: Bool, with others: [WaitingCommit]
  ) -> GroupResults {
    do throws(EngineError) {
      guard sequence != nil else {
        throw .invalidArgument("the engine was opened for reading only")
      }
      try makeWritable()
      try logs.prepareToGrow()
    } catch {
      return GroupResults(own: .failure(error), others: others.map { _ in .failure(error) })
    }
    defer { staged.removeAll(keepingCapacity: true) }
    var reservation: UInt64?
    var results = GroupResults(own: stage(batch, &reservation))
    for other in others { results.others.append(stage(other.batch, &reservation)) }
    if let reservation { stage(reservation) }

    let isSynced = synced || reservation != nil || others.contains { $0.synced }
    guard isSynced || !staged.isEmpty else { return results }
    do throws(EngineError) {
      try check(clarder_commit(database, isSynced))
      if isSynced { try logs.synchronizeOlder() }
      if let reservation { sequence?.didReserve(reservation) }
    } catch {
      disabledCause = "\(error)"
      results.disabledCause = disabledCause
      results.own = results.own.flatMap { _ in .failure(error) }
      results.others = results.others.map { $0.flatMap { _ in .failure(error) } }
    }
    return results
  }

  /// Throws the failure of a compaction in the background, if there was one, and when there is no
  /// place for another one.
  mutating func reportFailure() throws(EngineError) {
    try logs.requireInPlace()
    guard disabledCause == nil else { return }
    logs.mayHaveRotated()
    do throws(EngineError) {
      try check(clarder_commit(database, false))
    } catch {
      disabledCause = "\(error)"
      throw error
    }
  }

  // A longer value's memory is given back after the batch that needed it.
  private static let keptBytes = 1 << 20
}

// MARK: - After a failure

extension LevelDBWriter {
  /// Starts a new log if the last write failed.
  ///
  /// What was acknowledged is in memory, and is in a table before the new log is used; the failed
  /// write is in neither, so that from then on it has not taken effect.
  private mutating func makeWritable() throws(EngineError) {
    guard let cause = disabledCause else { return }
    guard !needsReopening, try logs.hasRoom() else { throw .writesDisabled(cause: cause) }
    clarder_renew_log(database)
    do throws(EngineError) {
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

/// A batch of the group that is being made, without the rows whose condition failed.
private struct StagedBatch {
  let batch: UnsafeMutablePointer<WriteBatch>
  let failed: Set<Int>
}

extension LevelDBWriter {
  /// Checks a batch's conditions against all before it, stamps it, and adds it to the write.
  private mutating func stage(
    _ batch: UnsafeMutablePointer<WriteBatch>, _ reservation: inout UInt64?
  ) -> Result<Commit, EngineError> {
    let failed: Set<Int>
    do throws(EngineError) {
      failed = try failedRequirements(of: batch)
    } catch {
      return .failure(error)
    }
    let isDropped = { (row: WriteBatch.Row) in
      !failed.isEmpty && failed.contains(row.requirement)
    }
    guard var sequence, !batch.pointee.rows.allSatisfy(isDropped) else {
      return .success(Commit(sequence: 0, failed: failed))
    }
    let (number, newReservation) = sequence.next()
    self.sequence = sequence
    if let newReservation { reservation = newReservation }
    batch.pointee.stamp(with: number)
    stage(batch.pointee, except: isDropped)
    staged.append(StagedBatch(batch: batch, failed: failed))
    return .success(Commit(sequence: number, failed: failed))
  }

  private mutating func failedRequirements(
    of batch: UnsafeMutablePointer<WriteBatch>
  ) throws(EngineError) -> Set<Int> {
    guard !batch.pointee.requirements.isEmpty else { return [] }
    var failed: Set<Int> = []
    for (index, requirement) in batch.pointee.requirements.enumerated() {
      let exists = try read(requirement.key)
      let holds = value.withBytes { bytes in
        requirement.condition.holds(
          for: exists ? bytes : nil, under: requirement.key.span.bytes)
      }
      if !holds { failed.insert(index) }
    }
    if value.count > LevelDBWriter.keptBytes { value = ValueBuffer() }
    return failed
  }

  /// Reads what is under `key` once the batches staged so far are applied.
  ///
  /// False when nothing is.
  private mutating func read(_ key: [UInt8]) throws(EngineError) -> Bool {
    for member in staged.reversed() {
      let row = member.batch.pointee.rows.last { row in
        row.keyCount == key.count && !member.failed.contains(row.requirement)
          && member.batch.pointee.bytes[row.key] == key[...]
      }
      guard let row else { continue }
      guard row.kind != .remove else { return false }
      let bytes = member.batch.pointee.bytes.span.bytes
      value.assign(bytes.extracting(row.value))
      return true
    }
    return try value.read(key.span.bytes, from: database)
  }

  private mutating func stage(
    _ batch: borrowing WriteBatch, except isDropped: (WriteBatch.Row) -> Bool
  ) {
    // On the stack, unless there are many rows.
    withUnsafeTemporaryAllocation(
      of: clarder_change.self, capacity: batch.rows.count
    ) { changes in
      batch.bytes.withUnsafeBytes { bytes in
        var count = 0
        for row in batch.rows where !isDropped(row) {
          changes.initializeElement(at: count, to: clarder_change(row, in: bytes))
          count += 1
        }
        clarder_stage(database, changes.baseAddress, count)
      }
    }
    logs.willGrow(rows: batch.rows.count, bytes: batch.bytes.count)
  }

  private func stage(_ reservation: UInt64) {
    withUnsafeBytes(of: reservation.littleEndian) { ceiling in
      CommitSequence.key.withUnsafeBytes { key in
        var row = clarder_change(
          key: clarder_slice(key), value: clarder_slice(ceiling), removes: false)
        clarder_stage(database, &row, 1)
      }
    }
  }
}

extension clarder_change {
  fileprivate init(_ row: WriteBatch.Row, in bytes: UnsafeRawBufferPointer) {
    self.init(
      key: clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.key])),
      value: clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.value])),
      removes: row.kind == .remove)
  }
}
