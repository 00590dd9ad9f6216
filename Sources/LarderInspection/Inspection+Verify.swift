// A verification checks these rules, beside the logs and the MANIFEST, which are checked when the
// snapshot is opened:
//
//   - the files of a backup match its manifest;
//   - the marker of a store with segments says so;
//   - every block of every live table matches its checksum, the filter and the index included;
//   - every metadata value and every record matches its checksum;
//   - the cache of every record is registered;
//   - a record that expires has an index row, in a bucket that does not end before it expires;
//   - an index row is well formed, and the row of a record has the record's size;
//   - a cache with a byte count holds that many bytes.
//
// Index rows of older buckets, of deleted records, and of cleared caches are not problems:
// overwrites leave them behind. They are only counted.

import Foundation
import Larder
import LarderBytes

/// A part of a store that is damaged or not supported.
struct Problem {
  /// Nil if the problem belongs to no cache, or to an unknown one.
  var cache: KnownCache?
  var key: [UInt8]?
  /// Whether it is not damaged, but was written by a later version of this library.
  var isUnsupported = false
  /// Whether a diagnosis finds it without a verification.
  var hasOwnFinding = false
  let message: String
}

/// The result of a verification.
struct Verification {
  var problems: [Problem] = []
  var records = 0
  var metadataRows = 0
  var indexRows = 0
  /// Index rows that no current record needs.
  var leftoverRows = 0
  /// The number of records under each number of a cache that is not registered.
  var ownerless: [UInt64: Int] = [:]

  /// Records without an index row in the expected bucket, by physical key.
  ///
  /// Such a record may have been saved with another lifetime; then its row is in another bucket.
  fileprivate var unindexed: [[UInt8]: (cache: KnownCache, key: [UInt8], expiresAt: Date)] = [:]

  var outcome: Outcome {
    if problems.contains(where: { !$0.isUnsupported }) { return .damaged }
    return problems.isEmpty ? .fine : .unsupported
  }
}

extension Inspection {
  /// Checks everything in the store.
  ///
  /// - Complexity: Two scans of records and index, one checksum and one lookup for each row.
  func verification() throws(InspectionError) -> Verification {
    var found = Verification()
    do {
      for message in try backup?.faults() ?? [] { found.problems.append(Problem(message: message)) }
    } catch {
      throw InspectionError(error)
    }
    found.problems += markerFault.map { [Problem(hasOwnFinding: true, message: $0)] } ?? []
    try verifyTables(&found)
    try verifyMetadata(&found)
    try forEachItem(in: Selection(), keys: .auto, payloads: .checked) {
      item throws(InspectionError) in
      switch item {
      case .unreadable(let cache, let message):
        found.problems.append(Problem(cache: cache, message: message))
      case .record(let record):
        found.records += 1
        if record.cache.registration == nil { found.ownerless[record.cache.id, default: 0] += 1 }
        try verify(record, &found)
      }
      return true
    }
    for (id, count) in found.ownerless.sorted(by: { $0.key < $1.key }) {
      found.problems.append(
        Problem(
          cache: catalog.cache(numbered: id), hasOwnFinding: true,
          message: "no cache owns its records, of which there are \(Amount.text(count)): "
            + "the registration is lost"))
    }
    try verifyIndex(&found)
    try verifyCounts(&found)
    for missing in found.unindexed.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      found.problems.append(
        Problem(
          cache: missing.value.cache, key: missing.value.key,
          message: "it expires but has no index row"))
    }
    return found
  }

  /// Checks the tables, of which a scan reads only the blocks with its entries.
  ///
  /// It reads a snapshot that was not opened: in the opened one, tables are compacted.
  private func verifyTables(_ found: inout Verification) throws(InspectionError) {
    let copy: StoreSnapshot
    do {
      copy = try StoreSnapshot(of: path, named: "kvinspect-")
    } catch {
      throw InspectionError(error)
    }
    let files = try DatabaseFiles(at: copy.path)
    for name in files.names.sorted() where files.level(of: name) != nil {
      var faults: [TableFile.Fault] = []
      let bytes = try files.bytes(of: name)
      do throws(TableFile.Fault) {
        let table = try TableFile(bytes)
        faults += table.filterFault.map { [$0] } ?? []
        for place in table.blocks {
          do throws(TableFile.Fault) {
            _ = try table.block(at: place)
          } catch {
            faults.append(error)
          }
        }
      } catch {
        faults.append(error)
      }
      found.problems += faults.map {
        Problem(isUnsupported: $0.isUnsupported, message: "\(name), \($0)")
      }
    }
  }

  private func verifyMetadata(_ found: inout Verification) throws(InspectionError) {
    do throws(StoreError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.metadata.rawValue]))
      while try cursor.next() {
        found.metadataRows += 1
        let (key, value) = cursor.withEntry { key, value in
          ([UInt8](key), [UInt8](value))
        }
        // The catalog has checked these.
        guard key != Metadata.format, !key.starts(with: Metadata.cachePrefix),
          !key.starts(with: Metadata.tagPrefix)
        else { continue }
        let isWhole =
          if key == CommitSequence.key {
            value.count == 8
          } else if key.starts(with: Metadata.migratePrefix) {
            MigrationMark(in: value, under: key) != nil
          } else {
            Metadata.body(of: value, under: key) != nil
          }
        guard !isWhole else { continue }
        let name = KeyForm.text(ofName: String(decoding: key.dropFirst(), as: UTF8.self))
        found.problems.append(Problem(message: "the metadata row \(name) is damaged"))
      }
    } catch .corrupt {
      // The catalog has reported it.
    } catch {
      throw failure(error)
    }
  }

  private func verify(
    _ record: FoundRecord, _ found: inout Verification
  ) throws(InspectionError) {
    let cache = record.cache
    guard case .success(let content) = record.content else {
      found.problems.append(
        Problem(
          cache: cache, key: record.key, isUnsupported: record.state == .unsupported,
          message: (record.problem ?? "it cannot be read") + (try payloadPlace(of: record))))
      return
    }
    guard let expiresAt = content.expiresAt else { return }
    if let lifetime = cache.registration?.lifetime.applied(to: content) {
      let bucket = lifetime.bucket(of: expiresAt)
      let row = IndexRow(cacheID: cache.id, bucket: bucket, userKey: record.key)
      do throws(StoreError) {
        if try engine.get(row.key.span.bytes) != nil { return }
      } catch .corrupt {
        // The scan of the index reports it, and finds any other row.
      } catch {
        throw failure(error)
      }
    }
    let key = KeySpace.records.prefix(ofCache: cache.id) + record.key
    found.unindexed[key] = (cache, record.key, expiresAt)
  }

  /// Where the payload of a record is, for a message; empty if it is in LevelDB.
  private func payloadPlace(of record: FoundRecord) throws(InspectionError) -> String {
    let key = KeySpace.records.prefix(ofCache: record.cache.id) + record.key
    do throws(StoreError) {
      guard let place = try engine.payloadPlace(of: key) else { return "" }
      return "; its payload is in \(place.file) at byte \(place.offset)"
    } catch .corrupt {
      return ""
    } catch {
      throw failure(error)
    }
  }

  private func verifyIndex(_ found: inout Verification) throws(InspectionError) {
    let range = EngineRange(prefix: [KeySpace.expiry.rawValue])
    progress?.restart()
    do throws(StoreError) {
      let cursor = try engine.cursor(over: range)
      while try cursor.next() {
        found.indexRows += 1
        let (row, bytes) = cursor.withEntry { key, value in
          progress?.step { share(of: range, through: key) }
          return (IndexRow(key: key), IndexRow.recordBytes(in: value))
        }
        guard let row, let bytes else {
          found.problems.append(
            Problem(
              cache: row.map { catalog.cache(numbered: $0.cacheID) }, key: row?.userKey,
              message: "an index row is damaged"))
          continue
        }
        try verify(row, storedBytes: bytes, &found)
      }
    } catch .corrupt(_, _, let message?) {
      // The rows of these records may be in the unreadable rest of the index.
      found.unindexed = [:]
      found.problems.append(Problem(message: "the index: " + withUserPath(message)))
    } catch {
      throw failure(error)
    }
  }

  private func verify(
    _ row: IndexRow, storedBytes: UInt64, _ found: inout Verification
  ) throws(StoreError) {
    let cache = catalog.cache(numbered: row.cacheID)
    let recordKey = row.recordKey.bytes
    if let missing = found.unindexed[recordKey], row.mayHold(missing.expiresAt) {
      found.unindexed[recordKey] = nil
      return
    }
    let value: [UInt8]?
    do throws(StoreError) {
      value = try engine.get(recordKey.span.bytes)
    } catch .corrupt {
      // The scan of the records has reported it.
      return
    }
    guard !catalog.cleared.contains(row.cacheID), let value else {
      found.leftoverRows += 1
      return
    }
    let record: Record
    do throws(RecordFault) {
      record = try Record(value.span.bytes, under: recordKey.span.bytes)
    } catch {
      // The scan of the records has reported this too.
      return
    }
    let lifetime = cache.registration?.lifetime.applied(to: record)
    guard record.expiresAt.flatMap({ lifetime?.bucket(of: $0) }) == row.bucket else {
      found.leftoverRows += 1
      return
    }
    let size = recordKey.count + value.count
    guard storedBytes != UInt64(size) else { return }
    found.problems.append(
      Problem(
        cache: cache, key: row.userKey,
        message: "it has \(size) bytes but the index says \(storedBytes)"))
  }
}

extension Inspection {
  private func verifyCounts(_ found: inout Verification) throws(InspectionError) {
    for (id, count) in catalog.counts.sorted(by: { $0.key < $1.key }) {
      // Cleared caches are not counted; damaged counts were reported with the metadata.
      guard !catalog.cleared.contains(id), let count else { continue }
      let (bytes, isComplete): (Int, Bool)
      do throws(StoreError) {
        (bytes, isComplete) = try KeySpace.recordBytes(ofCache: id, in: engine)
      } catch {
        throw failure(error)
      }
      // The other scans report unreadable parts.
      guard isComplete, bytes != count else { continue }
      found.problems.append(
        Problem(
          cache: catalog.cache(numbered: id),
          message: "it holds \(bytes) bytes, but its count is \(count)"))
    }
  }
}
