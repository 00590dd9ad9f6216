import Foundation
import LarderBytes

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
  private var slice: ConditionalSlice<Deleted>

  private struct Deleted {
    let counter: WritableKeyPath<ValidationReport, Int>
    let bytes: Int
  }

  init(of core: CacheCore<Value>, maxAge: MaxAge?) throws(StoreError) {
    self.core = core
    self.maxAge = maxAge
    context = core.context
    id = try core.usableID()
    now = context.clock.now()
    slice = ConditionalSlice(in: context, freesRoom: false)
  }

  mutating func run() throws(StoreError) {
    let range = EngineRange(prefix: KeySpace.records.prefix(ofCache: id))
    try scan(range) { validation, key, bytes throws(StoreError) in
      validation.inspect(bytes, under: key)
    }
    if !report.isComplete { try deleteUnreadable() }
  }

  /// Visits every entry of a range, and commits the deletions.
  ///
  /// A damaged block ends the scan and
  /// is reported.
  private mutating func scan(
    _ range: EngineRange,
    _ visit: (inout Self, _ key: RawSpan, _ value: RawSpan) throws(StoreError) -> Void
  ) throws(StoreError) {
    let cursor = try context.cursor(over: range, cache: core.name)
    while try advance(cursor) {
      try cursor.withEntry { key, value throws(StoreError) in try visit(&self, key, value) }
      if slice.isFull { try commit() }
    }
    try commit()
  }

  private mutating func advance(_ cursor: StoreCursor) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try cursor.next()
    } catch .corrupt {
      report.isComplete = false
      return false
    }
  }

  private mutating func inspect(_ bytes: RawSpan, under key: RawSpan) {
    let size = key.byteCount + bytes.byteCount
    let record: Record
    do throws(StoreError) {
      record = try core.record(bytes, under: key)
    } catch .newerSchema, .incompatible {
      report.kept += 1
      report.newer += 1
      return
    } catch {
      return delete(key, size, if: .damaged(Record.stamp), as: \.unreadable, readBy: .cursor)
    }
    let same = WriteBatch.Condition.unchanged(since: record.sequence, in: Record.stamp)
    do throws(StoreError) {
      let found = try core.lookup(record, in: bytes, under: key, at: now, maxAge: maxAge)
      // With an invalid date every entry would look expired, so nothing is deleted.
      guard case .expired = found, now.timeIntervalSinceReferenceDate.isFinite else {
        return report.kept += 1
      }
      delete(key, size, if: same, as: \.expired, readBy: .cursor)
    } catch {
      delete(key, size, if: same, as: \.unreadable, readBy: .cursor)
    }
  }

  /// Deletes the entries that notes name and that lie in damaged blocks.
  private mutating func deleteUnreadable() throws(StoreError) {
    try context.writeNotes()
    var seen: Set<RecordKey> = []
    let range = EngineRange(prefix: KeySpace.notes.prefix(ofCache: id))
    try scan(range) { validation, key, value throws(StoreError) in
      var keys = KeyList()
      guard let pack = NotePack(key: key), keys.append(pack, value) else { return }
      for index in 0..<keys.count {
        let recordKey = RecordKey(cacheID: pack.cacheID, userKey: keys[index])
        guard case .unreadable = try validation.slice.find(recordKey),
          seen.insert(recordKey).inserted
        else { continue }
        validation.delete(
          recordKey.bytes.span.bytes, recordKey.bytes.count, if: .damaged(Record.stamp),
          as: \.unreadable, readBy: .lookup)
      }
    }
  }

  private mutating func delete(
    _ key: RawSpan, _ bytes: Int, if condition: WriteBatch.Condition,
    as counter: WritableKeyPath<ValidationReport, Int>,
    readBy source: ConditionalSlice<Deleted>.Source
  ) {
    let cause: RemovalCause = counter == \.expired ? .expired : .removed
    let keyBytes = [UInt8](key)
    slice.add(
      Deleted(counter: counter, bytes: bytes), key: keyBytes, if: condition, readBy: source
    ) { write, requirement in
      write.rows.remove(keyBytes.span.bytes, if: requirement, note: cause.rawValue)
    }
  }

  /// Commits the deletions; entries that were saved or removed meanwhile are kept.
  private mutating func commit() throws(StoreError) {
    guard !slice.isEmpty else { return }
    let (applied, changed) = try slice.commit()
    for deleted in applied {
      report[keyPath: deleted.counter] += 1
      core.counts.validated.add(bytes: deleted.bytes)
    }
    report.kept += changed.count
  }
}
