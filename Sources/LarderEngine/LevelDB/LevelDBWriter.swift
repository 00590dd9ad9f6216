import CLarderLevelDB

/// Applies batches to a LevelDB database, one at a time: its user holds a lock.
struct LevelDBWriter: ~Copyable {
  private let database: OpaquePointer
  private var sequence: CommitSequence

  // Kept from one batch to the next, so that a small one allocates nothing.
  private var changes: [clarder_change] = []
  private var value = ValueBuffer()

  init(of database: OpaquePointer) throws(EngineError) {
    let row = ValueBuffer()
    var found = false
    let status = CommitSequence.key.withUnsafeBytes { key in
      clarder_get(database, clarder_slice(key), row.handle, &found)
    }
    try check(status)
    let bytes = row.withBytes { bytes in bytes.withUnsafeBytes { [UInt8]($0) } }
    sequence = try CommitSequence(resumingAfter: found ? bytes : nil)
    self.database = database
  }

  mutating func commit(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(EngineError) -> Commit {
    let failed = try failedRequirements(of: batch)
    let isDropped = { (row: WriteBatch.Row) in
      !failed.isEmpty && failed.contains(row.requirement)
    }
    guard !batch.rows.allSatisfy(isDropped) else { return Commit(sequence: 0, failed: failed) }

    let (sequence, reservation) = sequence.next()
    batch.stamp(with: sequence)
    try write(
      batch, except: isDropped, reservation: reservation, synced: synced || reservation != nil)
    if let reservation { self.sequence.didReserve(reservation) }
    return Commit(sequence: sequence, failed: failed)
  }

  /// Throws the failure of a compaction in the background, if there was one.
  func reportFailure() throws(EngineError) {
    try check(clarder_write(database, nil, 0, false))
  }

  private mutating func failedRequirements(
    of batch: borrowing WriteBatch
  ) throws(EngineError) -> Set<Int> {
    var failed: Set<Int> = []
    for (index, requirement) in batch.requirements.enumerated() {
      var exists = false
      let status = requirement.key.withUnsafeBytes { key in
        clarder_get(database, clarder_slice(key), value.handle, &exists)
      }
      try check(status)
      let holds = value.withBytes { bytes in
        requirement.condition.holds(
          for: exists ? bytes : nil, under: requirement.key.span.bytes)
      }
      if !holds {
        failed.insert(index)
      }
    }
    if value.count > LevelDBWriter.keptBytes { value = ValueBuffer() }
    return failed
  }

  private mutating func write(
    _ batch: borrowing WriteBatch, except isDropped: (WriteBatch.Row) -> Bool,
    reservation: UInt64?, synced: Bool
  ) throws(EngineError) {
    changes.removeAll(keepingCapacity: true)
    let status = batch.bytes.withUnsafeBytes { bytes in
      for row in batch.rows where !isDropped(row) {
        changes.append(clarder_change(row, in: bytes))
      }
      guard let reservation else {
        return clarder_write(database, changes, changes.count, synced)
      }
      return withUnsafeBytes(of: reservation.littleEndian) { value in
        CommitSequence.key.withUnsafeBytes { key in
          changes.append(
            clarder_change(
              key: clarder_slice(key), value: clarder_slice(value), removes: false))
          return clarder_write(database, changes, changes.count, synced)
        }
      }
    }
    if changes.count > LevelDBWriter.keptChanges { changes = [] }
    try check(status)
  }

  // More than this is given back after the batch that needed it.
  private static let keptBytes = 1 << 20
  private static let keptChanges = 1 << 14
}

extension clarder_change {
  fileprivate init(_ row: WriteBatch.Row, in bytes: UnsafeRawBufferPointer) {
    self.init(
      key: clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.key])),
      value: clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.value])),
      removes: row.kind == .remove)
  }
}
