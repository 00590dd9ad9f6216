import Foundation

/// The result of ``Cache/validate(maxAge:)``.
public struct ValidationReport: Sendable, Hashable {
  /// Entries that were deleted because they had expired.
  public var expired = 0
  /// Entries that were deleted because their bytes were damaged or did not decode.
  public var unreadable = 0
  /// Entries that were kept, the ``newer`` ones included.
  public var kept = 0
  /// Entries of a newer schema version or record format, which were kept for the program that wrote
  /// them.
  public var newer = 0
  /// Whether everything could be read.
  ///
  /// False if a block of a file is damaged. The entries there that notes name were
  /// deleted, and counted as ``unreadable``; others may be left, and reading them throws.
  public var isComplete = true

  init() {}
}

extension Cache {
  /// Deletes the entries that have expired, and those that cannot be read.
  ///
  /// ```swift
  /// let report = try genres.validate()   // deletes what has expired or cannot be decoded
  /// print(report.expired)
  /// ```
  ///
  /// An entry with a newer schema version is kept and counted, whatever its age: a program that is
  /// rolled back must not lose data. Stale entries are kept. An entry that is saved while this runs
  /// is never deleted by it.
  ///
  /// A damaged block of a file does not end it: see ``ValidationReport/isComplete``. To get rid of
  /// the block, open the store with ``DamagePolicy/salvage``.
  ///
  /// - Parameter maxAge: Also deletes entries of this age or older; nil, the default, leaves it to
  ///   the cache's lifetime.
  /// - Returns: The numbers of entries that were deleted and kept.
  /// - Throws: ``StoreError/diskFull``, ``StoreError/io(_:)`` or
  ///   ``StoreError/writesDisabled(cause:)`` if deleting failed; ``StoreError/readOnly(cause:)``,
  ///   ``StoreError/closed``.
  /// - Complexity: One scan that decodes every entry; one append for up to 256 deletions. If a
  ///   block is damaged, also a scan of the cache's notes with a lookup for each.
  @discardableResult public func validate(
    maxAge: MaxAge? = nil
  ) throws -> ValidationReport {
    try store.requireWritable()
    var validation = try Validation(of: core, maxAge: maxAge)
    try validation.run()
    return validation.report
  }
}

/// One call of ``Cache/validate(maxAge:)``.
private struct Validation<Value: Sendable>: ~Copyable {
  private let core: CacheCore<Value>
  private let context: StoreContext
  private let id: UInt64
  private let maxAge: MaxAge?
  private let now: Date
  private(set) var report = ValidationReport()

  init(of core: CacheCore<Value>, maxAge: MaxAge?) throws(StoreError) {
    self.core = core
    self.maxAge = maxAge
    context = core.context
    id = try core.usableID()
    now = context.clock.now()
  }

  mutating func run() throws(StoreError) {
    var pass = try RecordPass(
      over: EngineRange(prefix: KeySpace.records.prefix(ofCache: id)), ofCache: core.name,
      readsPayloads: true, freesRoom: false, in: context)
    while try pass.next() {
      try pass.visit { key, bytes, _, changes in inspect(bytes, under: key, &changes) }
      if pass.isFull { try commit(&pass) }
    }
    try commit(&pass)
    guard pass.damage != nil else { return }
    report.isComplete = false
    try deleteUnreadable()
  }

  private mutating func inspect(
    _ bytes: RawSpan, under key: RawSpan, _ changes: inout RecordChanges
  ) {
    let keyBytes = [UInt8](key)
    let size = key.byteCount + bytes.byteCount
    let record: Record
    do throws(StoreError) {
      record = try core.record(bytes, under: key)
    } catch .newerSchema, .incompatible {
      report.kept += 1
      report.newer += 1
      return
    } catch {
      return changes.remove(keyBytes, bytes: size, if: .damaged(Record.stamp), .removed)
    }
    let same = WriteBatch.Condition.unchanged(since: record.sequence, in: Record.stamp)
    do throws(StoreError) {
      let found = try core.lookup(record, in: bytes, under: key, at: now, maxAge: maxAge)
      // With an invalid date every entry would look expired, so nothing is deleted.
      guard case .expired = found, now.timeIntervalSinceReferenceDate.isFinite else {
        return report.kept += 1
      }
      changes.remove(keyBytes, bytes: size, if: same, .expired)
    } catch {
      changes.remove(keyBytes, bytes: size, if: same, .removed)
    }
  }

  /// Commits the deletions; entries that were saved or removed since they were read are kept.
  private mutating func commit(_ pass: inout RecordPass) throws(StoreError) {
    guard pass.hasChanges else { return }
    report.kept += try pass.commitOnce { didDelete($0) }.count
  }

  private mutating func didDelete(_ change: RecordChanges.Change) {
    if change.cause == .expired { report.expired += 1 } else { report.unreadable += 1 }
    core.counts.deleted(change, .validation, keyedBy: core.keyKind)
  }

  /// Deletes the entries that notes name and that lie in damaged blocks.
  private mutating func deleteUnreadable() throws(StoreError) {
    try context.writeNotes()
    var changes = RecordChanges(in: context, freesRoom: false)
    var seen: Set<RecordKey> = []
    let cursor = try context.cursor(
      over: EngineRange(prefix: KeySpace.notes.prefix(ofCache: id)), cache: core.name)
    func next() throws(StoreError) -> Bool {
      do throws(StoreError) {
        return try cursor.next()
      } catch .corrupt {
        // Entries that only the notes of this block name are left.
        return false
      }
    }
    while try next() {
      try cursor.withEntry { key, value throws(StoreError) in
        var keys = KeyList()
        guard let pack = NotePack(key: key), keys.append(pack, value) else { return }
        for index in 0..<keys.count {
          let recordKey = RecordKey(cacheID: pack.cacheID, userKey: keys[index])
          guard case .unreadable = try changes.find(recordKey), seen.insert(recordKey).inserted
          else { continue }
          let key = recordKey.bytes
          changes.remove(key, bytes: key.count, if: .damaged(Record.stamp), .removed)
        }
      }
      if changes.isFull { try commit(&changes) }
    }
    try commit(&changes)
  }

  private mutating func commit(
    _ changes: inout RecordChanges
  ) throws(StoreError) {
    guard !changes.isEmpty else { return }
    let (applied, changed) = try changes.commit()
    for change in applied { didDelete(change) }
    report.kept += changed.count
  }
}
