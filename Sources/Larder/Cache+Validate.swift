import Foundation
import LarderEngine

/// What ``Cache/validate(maxAge:)`` found.
public struct ValidationReport: Sendable, Hashable {
  /// Entries that were deleted because they had expired.
  public var expired = 0
  /// Entries that were deleted because their bytes were damaged or did not decode.
  public var unreadable = 0
  /// Entries that were left, the ``newer`` ones among them.
  public var kept = 0
  /// Entries that were left for a newer program: of a newer schema or record format.
  public var newer = 0
  /// Whether everything could be read.
  ///
  /// False when a block of a file is damaged. The entries there that the expiry index names were
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
  /// - Parameter maxAge: Deletes what is as old as this or older, too; nil, the default, leaves it
  ///   to the cache's lifetime.
  /// - Returns: How many entries were deleted and kept.
  /// - Throws: ``StoreError/diskFull``, ``StoreError/io(_:)`` or
  ///   ``StoreError/writesDisabled(cause:)`` when deleting failed; ``StoreError/readOnly(cause:)``,
  ///   ``StoreError/closed``.
  /// - Complexity: One scan that decodes every entry; one append for up to 256 deletions. If a
  ///   block is damaged, also a scan of the cache's expiry index with a lookup for each row.
  @discardableResult public func validate(
    maxAge: MaxAge? = nil
  ) throws -> ValidationReport {
    try store.requireWritable()
    var report = ValidationReport()
    let now = store.clock.now()
    let prefix = KeySpace.records.prefix(ofCache: core.id)
    let cursor = try store.cursor(over: EngineRange(prefix: prefix), in: core)
    var deletions = Deletions()
    while try advance(cursor, &report) {
      cursor.withEntry { key, value in
        judge(value, under: key, at: now, maxAge: maxAge, report: &report, deletions: &deletions)
      }
      if deletions.deleted.count >= 256 { try commit(&deletions, report: &report) }
    }
    try commit(&deletions, report: &report)
    if !report.isComplete { try deleteUnreadable(&report) }
    return report
  }

  /// Moves to the next entry; at a part of a file that cannot be read, notes it and ends.
  private func advance(
    _ cursor: any EngineCursor, _ report: inout ValidationReport
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try store.advance(cursor, in: core)
    } catch .corrupt {
      report.isComplete = false
      return false
    }
  }

  /// Deletes the entries that the expiry index names and that lie in damaged blocks.
  private func deleteUnreadable(_ report: inout ValidationReport) throws(StoreError) {
    let (indexPrefix, prefix) = (
      KeySpace.expiry.prefix(ofCache: core.id), KeySpace.records.prefix(ofCache: core.id)
    )
    let cursor = try store.cursor(over: EngineRange(prefix: indexPrefix), in: core)
    var deletions = Deletions()
    var buffer = ValueBuffer()
    var seen: Set<[UInt8]> = []
    while try advance(cursor, &report) {
      let row = cursor.withEntry { key, _ in key.withUnsafeBytes { Array($0) } }
      let userKey = row.dropFirst(indexPrefix.count + 8)
      do throws(StoreError) {
        _ = try store.get(prefix + userKey, in: core, into: &buffer)
      } catch .corrupt {
        let key = prefix + userKey
        guard seen.insert(key).inserted else { continue }
        deletions.add(key.span.bytes, RawSpan(), if: .damaged, because: \.unreadable)
      }
      if deletions.deleted.count >= 256 { try commit(&deletions, report: &report) }
    }
    try commit(&deletions, report: &report)
  }

  private func judge(
    _ bytes: RawSpan, under recordKey: RawSpan, at now: Date, maxAge: MaxAge?,
    report: inout ValidationReport, deletions: inout Deletions
  ) {
    let record: Record
    do throws(StoreError) {
      record = try core.record(bytes, under: recordKey)
    } catch .newerSchema, .incompatible {
      report.kept += 1
      report.newer += 1
      return
    } catch {
      return deletions.add(recordKey, bytes, if: .damaged, because: \.unreadable)
    }
    do throws(StoreError) {
      let found = try core.lookup(
        record, in: bytes, under: recordKey, at: now, maxAge: maxAge, origin: store.origin)
      // By a date that is none everything has expired, and nothing is deleted.
      guard case .expired = found, now.timeIntervalSinceReferenceDate.isFinite else {
        return report.kept += 1
      }
      deletions.add(
        recordKey, bytes, if: .unchanged(since: record.sequence), because: \.expired)
    } catch {
      deletions.add(
        recordKey, bytes, if: .unchanged(since: record.sequence), because: \.unreadable)
    }
  }

  private func commit(
    _ deletions: inout Deletions, report: inout ValidationReport
  ) throws(StoreError) {
    guard !deletions.deleted.isEmpty else { return }
    let failed = try store.commit(&deletions.rows).failed
    for (index, (cause, bytes)) in deletions.deleted.enumerated() {
      guard !failed.contains(index) else {
        // What somebody saved or removed meanwhile is not ours to delete.
        report.kept += 1
        continue
      }
      report[keyPath: cause] += 1
      core.counts.validated.add(bytes: bytes)
    }
    deletions.rows.reset()
    deletions.deleted.removeAll(keepingCapacity: true)
  }
}

/// Deletions that wait to be written together, and what each is counted as once it is done.
private struct Deletions: ~Copyable {
  var rows = WriteBatch()
  var deleted: [(cause: WritableKeyPath<ValidationReport, Int>, bytes: Int)] = []

  mutating func add(
    _ key: RawSpan, _ record: RawSpan, if condition: WriteBatch.Condition,
    because cause: WritableKeyPath<ValidationReport, Int>
  ) {
    let deletion: Deletion = cause == \.expired ? .expired : .removed
    rows.remove(key, if: rows.require(key, condition), note: deletion.rawValue)
    deleted.append((cause, key.byteCount + record.byteCount))
  }
}
