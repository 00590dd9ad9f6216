/// An engine that keeps its entries in memory until it is freed.
///
/// It is for tests, previews and stores that need not last. It has no files, so none can be damaged
/// and no disk can be full.
package final class InMemoryEngine: StorageEngine {
  fileprivate struct State {
    var entries = SortedEntries()
    var sequence: CommitSequence
    var condition = Condition.open
    var participant: (any CommitParticipant)?
  }

  fileprivate enum Condition {
    case open, suspended, closed
  }

  private let state: Lock<State>
  private let cursorSliceEntries: Int

  /// - Parameter cursorSliceEntries: The number of steps after which a cursor continues in a newer
  ///   state.
  package init(cursorSliceEntries: Int = 100_000) {
    precondition(cursorSliceEntries > 0, "a cursor slice of \(cursorSliceEntries) entries")
    self.cursorSliceEntries = cursorSliceEntries
    state = Lock(State(sequence: CommitSequence()))
  }

  package func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    let value = try reading { entries in
      key.withUnsafeBytes { key in entries.find(key).map { entries[$0].value } }
    }
    guard let value else {
      buffer.clear()
      return false
    }
    buffer.assign(value.span.bytes)
    return true
  }

  @discardableResult
  package func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    try batch.checkLimits()
    return try state.withLock { state throws(StoreError) in
      try state.checkOpen()
      return try state.apply(&batch)
    }
  }

  package func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    InMemoryCursor(
      over: range, in: self, reading: try snapshot(), sliceEntries: cursorSliceEntries)
  }

  /// Always 0: no entry is in a file.
  package func approximateBytes(in range: EngineRange) throws(StoreError) -> UInt64 {
    try reading { _ in 0 }
  }

  /// Does nothing: deleted and overwritten entries are gone already.
  package func compact(_ range: EngineRange) throws(StoreError) {
    try checkOpen()
  }

  /// Always nil: LevelDB's figures are about its files and memory.
  package func property(_ name: String) throws(StoreError) -> String? {
    try reading { _ in nil }
  }

  package func join(_ participant: any CommitParticipant) {
    state.withLock { $0.participant = participant }
  }

  package func close() throws(StoreError) {
    state.withLock { state in
      state.condition = .closed
      state.entries = SortedEntries()
    }
  }

  /// Only refuses calls: no other process can have the entries.
  package func suspend() throws(StoreError) { try change(to: .suspended) }

  package func resume() throws(StoreError) { try change(to: .open) }

  private func change(to condition: Condition) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      guard state.condition != .closed else { throw .closed }
      state.condition = condition
    }
  }

  /// A copy of the current entries, which later changes do not affect.
  func snapshot() throws(StoreError) -> SortedEntries {
    try reading { $0 }
  }

  package func checkOpen() throws(StoreError) {
    try reading { _ in }
  }

  // The body runs under the lock, so that only cursors hold copies of the entries: while there is a
  // copy, a write has to copy what it changes.
  private func reading<R: Sendable>(_ body: (SortedEntries) -> R) throws(StoreError) -> R {
    try state.withLock { state throws(StoreError) in
      try state.checkOpen()
      return body(state.entries)
    }
  }
}

extension InMemoryEngine.State {
  fileprivate func checkOpen() throws(StoreError) {
    switch condition {
    case .open: return
    case .suspended: throw .suspended
    case .closed: throw .closed
    }
  }

  fileprivate mutating func apply(_ batch: inout WriteBatch) throws(StoreError) -> Commit {
    var failed: Set<Int> = []
    for (index, requirement) in batch.requirements.enumerated()
    where !holds(requirement) {
      failed.insert(index)
    }
    participant?.willWrite(batch, without: failed)
    defer { participant?.didWrite(batch, without: failed) }
    guard batch.hasRow(without: failed) else { return Commit(sequence: 0, failed: failed) }
    let rows = batch.rows.filter { $0.isKept(without: failed) }

    let needs = participant?.needs ?? (counting: false, reports: false)
    if needs.counting { try admit(&batch, without: failed) }
    let (sequence, reservation) = sequence.next()
    batch.stamp(with: sequence)
    apply(rows, of: batch)
    if needs.counting, let participant {
      var contribution = WriteBatch()
      participant.contribute(to: &contribution)
      apply(contribution.rows, of: contribution)
      participant.ended(didCommit: true)
    }
    // The row is not needed here, but a scan finds the same rows in every engine.
    if let reservation {
      withUnsafeBytes(of: reservation.littleEndian) { value in
        CommitSequence.key.withUnsafeBytes { entries.put($0, [UInt8](value)) }
      }
      self.sequence.didReserve(reservation)
    }
    let commit = Commit(sequence: sequence, failed: failed)
    if needs.reports { participant?.committed(batch, commit) }
    return commit
  }

  private mutating func apply(_ rows: [WriteBatch.Row], of batch: borrowing WriteBatch) {
    batch.bytes.withBytes { bytes in
      for row in rows {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        switch row.kind {
        case .put: entries.put(key, [UInt8](bytes[row.value]))
        case .remove: entries.remove(key)
        }
      }
    }
  }

  private func admit(
    _ batch: inout WriteBatch, without failed: Set<Int>
  ) throws(StoreError) {
    guard let participant else { return }
    var staged = StagedSizes(isAlone: true)
    batch.shortage = staged.admit(batch, without: failed, by: participant) { key in
      entries.find(key).map { key.count + entries[$0].value.count } ?? 0
    }
    if let shortage = batch.shortage { throw StoreError(shortage) }
  }

  private func holds(_ requirement: WriteBatch.Requirement) -> Bool {
    let key = requirement.key.span.bytes
    guard let place = key.withUnsafeBytes({ entries.find($0) }) else {
      return requirement.condition.holds(for: nil, under: key)
    }
    return requirement.condition.holds(for: entries[place].value.span.bytes, under: key)
  }
}
