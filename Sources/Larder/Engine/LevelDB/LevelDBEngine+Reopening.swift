// After a compaction in the background has failed, LevelDB refuses writes until its database is
// closed and opened again. The engine does that under its callers, who wait for it.

import Dispatch
import Synchronization

// MARK: - Writing after a failure

extension LevelDBEngine {
  /// Commits a batch again after `error`, if that may succeed by now.
  ///
  /// On a full disk it waits for a collection of segments. A batch that frees room may use the
  /// reserve, and is tried again also while compactions fail at a damaged block.
  ///
  /// - Throws: `error` if no attempt was made; otherwise the error of the last attempt.
  func commitAgain(
    _ batch: inout WriteBatch, synced: Bool, after error: StoreError
  ) throws(StoreError) -> Commit {
    let isDamage =
      switch error {
      case .corrupt, .writesDisabled: isDamageNoted.load(ordering: .relaxed)
      default: false
      }
    guard error.isFullDisk || (isDamage && batch.freesRoom), batch.isRepeatable else {
      throw error
    }
    guard batch.freesRoom else {
      guard makeRoom() else { throw error }
      return try commitOrReopen(&batch, synced: synced)
    }
    do throws(StoreError) {
      return try retry(&batch, synced: synced, after: error)
    } catch {
      guard error.isFullDisk, makeRoom() else { throw error }
    }
    return try retry(&batch, synced: synced, after: error)
  }

  /// Retries a batch that frees room, on a full disk or while compactions fail at a damaged block.
  ///
  /// The reserve has room for it. LevelDB refuses writes after a compaction has failed. Once
  /// reopened, it accepts them until the next compaction fails or uses up the room.
  ///
  /// - Throws: `error`, with which the first attempt failed: its outcome is unknown.
  func retry(
    _ batch: inout WriteBatch, synced: Bool, after error: StoreError
  ) throws(StoreError) -> Commit {
    for _ in 0..<Self.triesToFreeRoom {
      do throws(StoreError) {
        return try commitOrReopen(&batch, synced: synced)
      } catch .diskFull, .corrupt, .writesDisabled {
        continue
      }
    }
    throw error
  }

  static let triesToFreeRoom = 5

  /// Commits a batch; if the database has to be reopened for that, reopens it and tries once more.
  func commitOrReopen(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(StoreError) -> Commit {
    do throws(StoreError) {
      return try commit(&batch, synced: synced)
    } catch {
      guard batch.isRepeatable else { throw error }
      switch error {
      case .writesDisabled: break
      // Refused before anything was written, because the reserve is spent.
      case .diskFull where queue.withWriter({ $0.disabledCause == nil }): break
      default: guard database.isDown else { throw error }
      }
      guard try reopen(forFreeing: batch.freesRoom) else { throw error }
    }
    return try commit(&batch, synced: synced)
  }
}

// MARK: - Reopening the database

extension LevelDBEngine {
  /// Reopens the database if it is down, with `directory` locked; `path` is nil if it is closed.
  func bringUp(_ path: String?, forFreeing: Bool) throws(StoreError) {
    guard let path, database.isDown else { return }
    reopening.enter()
    defer { reopening.leave() }
    try openAgain(in: path, holdsCompactions: forFreeing)
  }

  /// Closes the database and opens it again, if writes need that.
  ///
  /// For a batch that frees room, compactions begin only after the next write: their tables would
  /// take up the room that the batch needs, before it is written.
  ///
  /// Other calls wait until it is open again. Cursors then continue after their entry. If opening
  /// fails, the next call tries again.
  ///
  /// - Returns: Whether the write may be retried. False if the database need not be reopened, if
  ///   the disk accepts no writes yet, so that the database stays open for reading, or if reopening
  ///   has changed the state that the write was based on.
  private func reopen(forFreeing: Bool) throws(StoreError) -> Bool {
    try directory.withLock { directory throws(StoreError) in
      guard let path = directory?.path else { throw .closed }
      guard !database.isSuspended else { throw .suspended }
      return try reopen(path, forFreeing: forFreeing)
    }
  }

  /// The same, with `directory` locked.
  private func reopen(_ path: String, forFreeing: Bool) throws(StoreError) -> Bool {
    // On a full disk, the tables of a compaction that failed or is under way can take up all room.
    var unnamedBytes = 0
    if queue.withWriter({ $0.seemsToHaveRoom(forFreeing: forFreeing) }) {
      guard queue.withWriter({ $0.needsReopening }) else { return false }
    } else {
      unnamedBytes = unfinishedBytes(in: path, forFreeing: forFreeing)
      guard unnamedBytes > 0,
        queue.withWriter({ $0.seemsToHaveRoom(forFreeing: forFreeing, after: unnamedBytes) })
      else { return false }
    }
    // A disk whose room is taken by those tables still accepts an empty file.
    guard options.files.acceptsWrites(in: path, count: unnamedBytes > 0 ? 0 : 4096) else {
      return false
    }
    reopening.enter()
    defer { reopening.leave() }
    // So that the next call retries if this attempt fails.
    queue.withWriter { $0.requireReopening() }
    database.close(as: .down)
    // Only after closing: until then the database may have been writing one of them.
    if unnamedBytes > 0 { try UnnamedTables(in: path, files: options.files).remove() }
    return try openAgain(in: path, holdsCompactions: forFreeing)
  }

  /// Opens a database that is closed and lets calls in, with `directory` locked.
  ///
  /// - Parameters:
  ///   - path: The directory.
  ///   - holdsCompactions: Whether compactions begin only after the next write.
  ///   - isCertain: Whether the outcome of every write is known. Otherwise one that failed may take
  ///     effect, and the participant is told that.
  /// - Returns: False if the state has changed that batches were based on.
  /// - Throws: The errors of an opening; the database is then still closed.
  @discardableResult func openAgain(
    in path: String, holdsCompactions: Bool = false, isCertain: Bool = false
  ) throws(StoreError) -> Bool {
    var options = options
    options.createIfMissing = false
    let participant = try queue.withWriter { writer throws(StoreError) in
      try writer.logs.requireInPlace()
      let afterFailedSync = writer.segmentSync?.hasFailed ?? false
      let (new, _) = try openDatabase(
        at: path, options, lending: &writer.reserve, holdsCompactions: holdsCompactions,
        afterFailedSync: afterFailedSync)
      writer.resume(with: new)
      database.replace(with: new)
      return writer.participant
    }
    let new = database.pointer
    let read: EngineReader = { key throws(StoreError) in
      try ValueBuffer.value(under: key, of: new)
    }
    let isRight = isCertain ? true : participant?.reopened(reading: read) ?? true
    database.bringUp()
    queue.withWriter { $0.restoreReserve() }
    return isRight
  }

  /// The size of the tables of a compaction that failed, or is to be ended; 0 if it is unknown.
  ///
  /// A compaction under way is ended for a batch that frees room. For other batches it is ended
  /// only if the disk has no room for its next piece of a table, so that it would fail anyway.
  private func unfinishedBytes(in path: String, forFreeing: Bool) -> Int {
    do throws(StoreError) {
      let available = try options.files.availableBytes(in: path)
      guard forFreeing || available < Self.tablePieceBytes else { return 0 }
      return try UnnamedTables(in: path, files: options.files).byteCount
    } catch {
      return 0
    }
  }

  /// LevelDB writes a table in pieces of this size.
  private static let tablePieceBytes: UInt64 = 64 << 10
}

// MARK: - Closing the database

extension LevelDBEngine {
  /// Restores a spent reserve after the database was closed, with `directory` locked.
  ///
  /// Closing ends a compaction, whose tables may take up the room of the reserve. The next opening
  /// needs that room if other files fill the disk meanwhile.
  func restoreReserve(in path: String) {
    guard queue.withWriter({ $0.isReserveSpent }) else { return }
    do throws(StoreError) {
      try UnnamedTables(in: path, files: options.files).remove()
    } catch {
      // They are removed when the store is opened.
    }
    queue.withWriter { $0.restoreReserveAfterClosing() }
  }
}
