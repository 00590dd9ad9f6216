import Foundation
import LarderBytes
import LarderEngine
import Synchronization

/// What a store's caches may take, and how room is made for more.
final class Space: Sendable {
  let accounting = Accounting()
  private let engine: any StorageEngine
  private let observations: Observations
  private let counts: StoreCounts
  private let clock: any WallClock
  /// The store's own budget, and what was read of all its caches.
  private let whole: (budget: Int, marks: ReadMarks)?
  /// Where the evictions of each budget have come to.
  private let hands = Mutex<[Int: Eviction.Hand]>([:])

  init(
    in engine: any StorageEngine, budget: Int?, clock: any WallClock,
    telling observations: Observations, counting counts: StoreCounts
  ) {
    self.engine = engine
    self.clock = clock
    self.observations = observations
    self.counts = counts
    whole = budget.map { [accounting] in (accounting.addBudget($0), ReadMarks(budget: $0)) }
    engine.measure(by: accounting)
  }

  /// Whether a cache with a budget of its own, or none, is counted.
  func counts(byteBudget: Int?) -> Bool { byteBudget != nil || whole != nil }

  /// What remembers which entries of such a cache were read.
  func marks(byteBudget: Int?) -> ReadMarks? { whole?.marks ?? byteBudget.map(ReadMarks.init) }
}

// MARK: - Writing

extension Space {
  /// Writes a batch, and makes room for it if a budget asks for that.
  ///
  /// `now` is the date to evict by; nil reads the clock if it comes to that, which is for callers
  /// that hold no lock.
  ///
  /// - Throws: ``StoreError/budgetExceeded(bytes:budget:)`` when it does not fit: nothing is
  ///   written, and unless something cannot be evicted, nothing was. Else as the engine does.
  func write(
    _ rows: inout WriteBatch, synced: Bool, at now: Date? = nil
  ) throws(StoreError) -> Commit {
    if accounting.isCounting, let (limit, bytes) = accounting.budgetBelow(rows) {
      throw .budgetExceeded(bytes: bytes, budget: limit)
    }
    while true {
      do throws(EngineError) {
        do throws(EngineError) {
          return try engine.write(&rows, synced: synced)
        } catch .overBudget(let shortage) {
          guard try makeRoom(for: shortage, at: now ?? clock.now()) else {
            throw .overBudget(shortage)
          }
        }
      } catch {
        throw StoreError(error)
      }
    }
  }

  /// Evicts until there is as much room as a batch was short of; answers whether there is now.
  private func makeRoom(for shortage: Shortage, at now: Date) throws(EngineError) -> Bool {
    // Before the lock: in a forked child nobody may be left to give it up.
    try engine.checkOpen()
    return try hands.withLock { hands throws(EngineError) in
      var eviction = Eviction(
        of: shortage.budget, isWhole: shortage.budget == whole?.budget, by: accounting,
        in: engine, telling: observations, counting: counts, at: now,
        from: hands[shortage.budget] ?? Eviction.Hand())
      defer { hands[shortage.budget] = eviction.hand }
      return try eviction.makeRoom(for: shortage)
    }
  }
}

// MARK: - Opening

extension Space {
  /// Goes on counting the caches that are counted on disk; all, if the store has a budget.
  ///
  /// Before anything is written: sweeps delete from caches that are not open, too.
  func open(_ registry: borrowing Registry) throws(EngineError) {
    let counted = try engine.cursor(over: EngineRange(prefix: Metadata.bytesPrefix)).next()
    guard counted || whole != nil else { return }
    for (name, registration) in try registry.dormant(in: engine).caches {
      if let bytes = try countOnDisk(registration.id) {
        accounting.open(account(of: registration, name.text, bytes: bytes, marks: whole?.marks))
      } else if whole != nil {
        try count(registration, name.text, marks: whole?.marks)
      }
    }
  }

  /// Begins, or ends, to count a cache that is being opened, or made.
  ///
  /// Nobody writes to it meanwhile.
  func open(
    _ registration: Registration, _ name: String, isNew: Bool, byteBudget: Int?,
    marks: ReadMarks?
  ) throws(EngineError) {
    let id = registration.id
    let known = accounting.count(id)
    guard counts(byteBudget: byteBudget) else {
      guard known != nil else { return }
      // Counted until the count is gone: a sweep may delete of it if this fails.
      var rows = WriteBatch()
      rows.remove(Metadata.bytes(id).span.bytes)
      try engine.write(&rows, synced: false)
      accounting.close([id])
      return
    }
    let own = byteBudget.map(accounting.addBudget)
    if let bytes = isNew ? 0 : known.flatMap({ $0.isExact ? $0.bytes : nil }) {
      accounting.open(account(of: registration, name, bytes: bytes, own: own, marks: marks))
    } else {
      accounting.close([id])
      try count(registration, name, own: own, marks: marks)
    }
  }

  private func account(
    of cache: Registration, _ name: String, bytes: Int, own: Int? = nil, marks: ReadMarks?,
    isExact: Bool = true
  ) -> Accounting.Account {
    Accounting.Account(
      name, id: cache.id, lifetime: cache.lifetime, marks: marks,
      budgets: [whole?.budget, own].compactMap(\.self), bytes: bytes, isExact: isExact)
  }

  private func countOnDisk(_ id: UInt64) throws(EngineError) -> Int? {
    let key = Metadata.bytes(id)
    guard let value = try engine.get(key.span.bytes) else { return nil }
    return Metadata.number(in: value, under: key).map { Int(clamping: $0) }
  }

  /// Counts what a cache holds, and gives every record a row in the index, by which it can be
  /// evicted.
  private func count(
    _ cache: Registration, _ name: String, own: Int? = nil, marks: ReadMarks?
  ) throws(EngineError) {
    var isIndexed = true
    do throws(EngineError) {
      try addMissingRows(of: cache)
    } catch .corrupt {
      // What cannot be read cannot be evicted either. The rest is, by its budget.
      isIndexed = false
    }
    let (sum, isComplete) = try KeySpace.heldBytes(ofCache: cache.id, in: engine)
    let isExact = isIndexed && isComplete
    var rows = WriteBatch()
    if isExact { rows.putMetadata(UInt64(sum), under: Metadata.bytes(cache.id)) }
    accounting.open(
      account(of: cache, name, bytes: sum, own: own, marks: marks, isExact: isExact))
    if !rows.isEmpty { try engine.write(&rows, synced: false) }
  }

  /// Adds the rows of records that had no limit when they were saved, or have none now.
  private func addMissingRows(of cache: Registration) throws(EngineError) {
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    let cursor = try engine.cursor(over: EngineRange(prefix: prefix))
    var rows = WriteBatch()
    while try cursor.next() {
      cursor.withEntry { key, value in
        do throws(RecordFault) {
          let record = try Record(value, under: key)
          guard record.expiresAt == nil || cache.lifetime.expiry(from: record.savedAt) == nil
          else { return }
          let userKey = key.extracting(prefix.count..<key.byteCount)
          let row = KeySpace.expiryKey(
            cache: cache.id, bucket: cache.lifetime.evictionBucket(of: record.savedAt),
            key: userKey.withUnsafeBytes { Array($0) })
          rows.put(row.span.bytes, stamped: false) { buffer in
            buffer.append(varint: UInt64(key.byteCount + value.byteCount))
          }
        } catch {
          // It is left for a validation, or a newer program; nothing evicts it.
        }
      }
      guard rows.rows.count >= 256 else { continue }
      try engine.write(&rows, synced: false)
      rows.reset()
    }
    if !rows.isEmpty { try engine.write(&rows, synced: false) }
  }
}
