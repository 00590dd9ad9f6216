import CLarderLevelDB

/// Applies batches to a LevelDB database, one at a time: its user holds a lock.
struct LevelDBWriter: ~Copyable {
  private let database: OpaquePointer
  // Nil when writes are refused.
  private var sequence: CommitSequence?

  // What conditions are about is read into this.
  private var value = ValueBuffer()

  init(of database: OpaquePointer, refusesWrites: Bool) throws(EngineError) {
    self.database = database
    guard !refusesWrites else { return }
    let row = ValueBuffer()
    var found = false
    let status = CommitSequence.key.withUnsafeBytes { key in
      clarder_get(database, clarder_slice(key), row.handle, &found)
    }
    try check(status)
    let bytes = row.withBytes { bytes in bytes.withUnsafeBytes { [UInt8]($0) } }
    sequence = try CommitSequence(resumingAfter: found ? bytes : nil)
  }

  mutating func commit(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(EngineError) -> Commit {
    guard var sequence else { throw .invalidArgument("the engine was opened for reading only") }
    let failed = try failedRequirements(of: batch)
    let isDropped = { (row: WriteBatch.Row) in
      !failed.isEmpty && failed.contains(row.requirement)
    }
    guard !batch.rows.allSatisfy(isDropped) else { return Commit(sequence: 0, failed: failed) }

    let (number, reservation) = sequence.next()
    self.sequence = sequence
    batch.stamp(with: number)
    try write(
      batch, except: isDropped, reservation: reservation, synced: synced || reservation != nil)
    if let reservation { self.sequence?.didReserve(reservation) }
    return Commit(sequence: number, failed: failed)
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

  private func write(
    _ batch: borrowing WriteBatch, except isDropped: (WriteBatch.Row) -> Bool,
    reservation: UInt64?, synced: Bool
  ) throws(EngineError) {
    let ceiling = (reservation ?? 0).littleEndian
    // On the stack, unless there are many rows.
    let status = withUnsafeTemporaryAllocation(
      of: clarder_change.self, capacity: batch.rows.count + 1
    ) { changes in
      batch.bytes.withUnsafeBytes { bytes in
        withUnsafeBytes(of: ceiling) { ceiling in
          CommitSequence.key.withUnsafeBytes { key in
            var count = 0
            for row in batch.rows where !isDropped(row) {
              changes.initializeElement(at: count, to: clarder_change(row, in: bytes))
              count += 1
            }
            if reservation != nil {
              let row = clarder_change(
                key: clarder_slice(key), value: clarder_slice(ceiling), removes: false)
              changes.initializeElement(at: count, to: row)
              count += 1
            }
            return clarder_write(database, changes.baseAddress, count, synced)
          }
        }
      }
    }
    try check(status)
  }

  // A longer value's memory is given back after the batch that needed it.
  private static let keptBytes = 1 << 20
}

extension clarder_change {
  fileprivate init(_ row: WriteBatch.Row, in bytes: UnsafeRawBufferPointer) {
    self.init(
      key: clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.key])),
      value: clarder_slice(UnsafeRawBufferPointer(rebasing: bytes[row.value])),
      removes: row.kind == .remove)
  }
}
