// What is checked of a store, beside the logs and the MANIFEST, which were read before it was
// opened:
//
//   - the files of a backup are what its manifest says;
//   - every block of its tables can be read, as far as one walk over everything goes;
//   - every metadata value and every record fits its checksum;
//   - a record that expires has a row in the index, in a bucket that is not over before it;
//   - a row has the form of one, and the row of a record tells its size;
//   - a cache that is counted holds as many bytes as its count says.
//
// Rows of older buckets, of records that are gone, and of cleared caches are no faults: they are
// left behind by overwrites, and are only counted.

import Foundation
import Larder
import LarderBytes
import LarderEngine

/// Something that is not as it was written.
struct Fault {
  /// Nil when it belongs to none, or to one that is not known.
  var cache: KnownCache?
  var key: [UInt8]?
  /// Whether a later version of this library wrote it, and nothing is wrong with it.
  var isUnsupported = false
  let message: String
}

/// What a verification found.
struct Verification {
  var faults: [Fault] = []
  var records = 0
  var metadataRows = 0
  var indexRows = 0
  /// Rows of the index that stand for nothing any more.
  var leftoverRows = 0

  /// Records for which no row was found where one is expected, by the rest of their keys.
  ///
  /// They may have been written with another lifetime; then they have a row in another bucket.
  fileprivate var unindexed: [[UInt8]: (cache: KnownCache, key: [UInt8], expiresAt: Date)] = [:]

  var outcome: Outcome {
    if faults.contains(where: { !$0.isUnsupported }) { return .damaged }
    return faults.isEmpty ? .fine : .unsupported
  }
}

extension Inspection {
  /// Checks everything that is in the store.
  ///
  /// - Complexity: Two walks over records and index, one checksum and one point read for each row.
  func verification() throws(InspectionError) -> Verification {
    var found = Verification()
    do {
      for message in try backup?.faults() ?? [] { found.faults.append(Fault(message: message)) }
    } catch {
      throw InspectionError(error)
    }
    try verifyMetadata(&found)
    try forEachItem(in: Selection(), keys: .auto) { item throws(InspectionError) in
      switch item {
      case .unreadable(let cache, let message):
        found.faults.append(Fault(cache: cache, message: message))
      case .record(let record):
        found.records += 1
        try verify(record, &found)
      }
      return true
    }
    try verifyIndex(&found)
    try verifyCounts(&found)
    for missing in found.unindexed.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      found.faults.append(
        Fault(
          cache: missing.value.cache, key: missing.value.key,
          message: "it expires and has no row in the index"))
    }
    return found
  }

  private func verifyMetadata(_ found: inout Verification) throws(InspectionError) {
    do throws(EngineError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.metadata.rawValue]))
      while try cursor.next() {
        found.metadataRows += 1
        let (key, value) = cursor.withEntry { key, value in
          ([UInt8](key), [UInt8](value))
        }
        // The catalog has looked at these.
        guard key != Metadata.format, !key.starts(with: Metadata.cachePrefix) else { continue }
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
        found.faults.append(Fault(message: "the metadata row \(name) is damaged"))
      }
    } catch .corrupt {
      // The catalog has told it.
    } catch {
      throw failure(error)
    }
  }

  private func verify(
    _ record: FoundRecord, _ found: inout Verification
  ) throws(InspectionError) {
    let cache = record.cache
    guard case .success(let content) = record.content else {
      found.faults.append(
        Fault(
          cache: cache, key: record.key, isUnsupported: record.state == .unsupported,
          message: record.fault ?? "it cannot be read"))
      return
    }
    guard let expiresAt = content.expiresAt else { return }
    if let bucket = cache.registration?.lifetime.bucket(of: expiresAt) {
      let row = IndexRow(cacheID: cache.id, bucket: bucket, userKey: record.key)
      do throws(EngineError) {
        if try engine.get(row.key.span.bytes) != nil { return }
      } catch .corrupt {
        // The walk over the index tells it, and whether there is another row.
      } catch {
        throw failure(error)
      }
    }
    let key = KeySpace.records.prefix(ofCache: cache.id) + record.key
    found.unindexed[key] = (cache, record.key, expiresAt)
  }

  private func verifyIndex(_ found: inout Verification) throws(InspectionError) {
    do throws(EngineError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.expiry.rawValue]))
      while try cursor.next() {
        found.indexRows += 1
        let (row, bytes) = cursor.withEntry { key, value in
          (IndexRow(key: key), IndexRow.recordBytes(in: value))
        }
        guard let row, let bytes else {
          found.faults.append(
            Fault(
              cache: row.map { catalog.cache(numbered: $0.cacheID) }, key: row?.userKey,
              message: "a row of the index is damaged"))
          continue
        }
        try verify(row, storedBytes: bytes, &found)
      }
    } catch .corrupt(let message) {
      // Without the rest of the index nothing can be said of what is in it.
      found.unindexed = [:]
      found.faults.append(Fault(message: "the index: " + inUsersWords(message)))
    } catch {
      throw failure(error)
    }
  }

  private func verify(
    _ row: IndexRow, storedBytes: UInt64, _ found: inout Verification
  ) throws(EngineError) {
    let cache = catalog.cache(numbered: row.cacheID)
    let recordKey = row.recordKey.bytes
    if let missing = found.unindexed[recordKey], row.mayHold(missing.expiresAt) {
      found.unindexed[recordKey] = nil
      return
    }
    let value: [UInt8]?
    do throws(EngineError) {
      value = try engine.get(recordKey.span.bytes)
    } catch .corrupt {
      // The walk over the records has told it.
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
      // Told by the walk over the records, too.
      return
    }
    let lifetime = cache.registration?.lifetime
    let bucket =
      record.expiresAt.flatMap { lifetime?.bucket(of: $0) }
      ?? lifetime?.evictionBucket(of: record.savedAt)
    guard bucket == row.bucket else {
      found.leftoverRows += 1
      return
    }
    let size = recordKey.count + value.count
    guard storedBytes != UInt64(size) else { return }
    found.faults.append(
      Fault(
        cache: cache, key: row.userKey,
        message: "it has \(size) bytes where the index says \(storedBytes)"))
  }
}

extension Inspection {
  private func verifyCounts(_ found: inout Verification) throws(InspectionError) {
    for (id, count) in catalog.counts.sorted(by: { $0.key < $1.key }) {
      // Of a cleared cache nothing is counted; a count that is damaged has been told.
      guard !catalog.cleared.contains(id), let count else { continue }
      let (bytes, isComplete): (Int, Bool)
      do throws(EngineError) {
        (bytes, isComplete) = try KeySpace.heldBytes(ofCache: id, in: engine)
      } catch {
        throw failure(error)
      }
      // What cannot be read the other walks tell.
      guard isComplete, bytes != count else { continue }
      found.faults.append(
        Fault(
          cache: catalog.cache(numbered: id),
          message: "it holds \(bytes) bytes and is counted as \(count)"))
    }
  }
}
