// After a compaction in the background has failed, LevelDB refuses writes until its database is
// closed and opened again. The engine does that under its callers, who cannot enter meanwhile.

import Synchronization

// MARK: - Writing after a failure

extension LevelDBEngine {
  /// Writes a batch that frees room, though the disk is full, or compactions fail at a damaged
  /// block.
  ///
  /// Room is kept for it. After a compaction that failed, LevelDB refuses writes; opened anew, it
  /// accepts them until the next one fails, or takes the room.
  ///
  /// - Throws: `error`, which it failed with first: what became of that attempt is not known.
  func retry(
    _ batch: inout WriteBatch, synced: Bool, after error: EngineError
  ) throws(EngineError) -> Commit {
    for _ in 0..<Self.triesToFreeRoom {
      do throws(EngineError) {
        return try commitOrReopen(&batch, synced: synced)
      } catch .diskFull, .corrupt, .writesDisabled {
        continue
      }
    }
    throw error
  }

  private static let triesToFreeRoom = 5

  func commitOrReopen(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(EngineError) -> Commit {
    do throws(EngineError) {
      return try commit(&batch, synced: synced)
    } catch {
      let cause: String
      if case .writesDisabled(let reason) = error {
        cause = reason
      } else if let reason = database.downCause {
        cause = reason
      } else {
        throw error
      }
      guard try reopen(because: cause, forFreeing: batch.freesRoom) else { throw error }
    }
    return try commit(&batch, synced: synced)
  }
}

// MARK: - Reopening the database

extension LevelDBEngine {
  package func whenReopened(_ body: @escaping @Sendable (EngineReader) -> Bool) {
    reopened.withLock { $0 = body }
  }

  /// Closes the database and opens it again, if that is what writing waits for.
  ///
  /// Other calls throw meanwhile; cursors go on behind the entry they stand on. When it cannot be
  /// opened again, the next call tries it.
  ///
  /// - Returns: Whether the write may be tried again. False when there is no need to open it anew,
  ///   when the disk does not take what is written yet, so that the database stays open for
  ///   reading, or when the write stands on what is different now.
  private func reopen(
    because cause: String, forFreeing: Bool
  ) throws(EngineError) -> Bool {
    try directory.withLock { directory throws(EngineError) in
      guard let path = directory?.path else { throw .closed }
      return try reopen(path, because: cause, forFreeing: forFreeing)
    }
  }

  /// The same, with `directory` locked.
  func reopen(
    _ path: String, because cause: String, forFreeing: Bool
  ) throws(EngineError) -> Bool {
    guard queue.withWriter({ $0.needsReopening }) else { return false }
    // What a failed compaction has left can take all room of a full disk.
    var unnamedBytes = 0
    if !queue.withWriter({ $0.seemsToHaveRoom(forFreeing: forFreeing) }) {
      guard forFreeing else { return false }
      let bytes = try UnnamedTables(in: path, files: options.files).byteCount
      guard bytes > 0, queue.withWriter({ $0.seemsToHaveRoom(forFreeing: true, after: bytes) })
      else { return false }
      unnamedBytes = bytes
    }
    guard unnamedBytes > 0 || options.files.acceptsWrites(in: path) else { return false }
    database.takeDown(because: cause)
    // Only now: until it was closed, the database may have been writing one of them.
    if unnamedBytes > 0 { try UnnamedTables(in: path, files: options.files).remove() }
    _ = try recover(directory: path, files: options.files, stamp: options.stamp)
    var options = options
    options.createIfMissing = false
    let new = try openDatabase(at: path, options)
    database.replace(with: new)
    queue.withWriter { $0.resume(with: new) }
    let read: EngineReader = { key throws(EngineError) in
      try ValueBuffer.value(under: key, of: new)
    }
    let isBatchRight = reopened.withLock { $0 }?(read) ?? true
    database.bringUp()
    return isBatchRight
  }
}
