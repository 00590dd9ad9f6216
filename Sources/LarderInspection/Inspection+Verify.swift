// A verification checks these rules, beside the logs and the MANIFEST, which are checked when the
// snapshot is opened:
//
//   - the files of a backup match its manifest;
//   - the marker of a store with segments says so;
//   - every block of every live table matches its checksum, the filter and the index included;
//   - every metadata value and every record matches its checksum;
//   - the cache of every record is registered;
//   - each row of notes matches its checksum, and a record that expires is in one of them if the
//     mark says so;
//   - a cache with a byte count holds that many bytes.
//
// Notes of deleted records and of cleared caches are not problems: a sweep drops them.

import Foundation
import Larder

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
  /// The notes of what expires, and the rows that have them.
  var notes = 0
  var packs = 0
  /// The number of records under each number of a cache that is not registered.
  var ownerless: [UInt64: Int] = [:]

  /// Hashes of the physical keys of all records that are noted; nil if not all notes can be read.
  fileprivate var noted: Set<Int>? = []

  var outcome: Outcome {
    if problems.contains(where: { !$0.isUnsupported }) { return .damaged }
    return problems.isEmpty ? .fine : .unsupported
  }
}

extension Inspection {
  /// Checks everything in the store.
  ///
  /// - Complexity: Two scans of the records, one checksum for each row. Memory for a number for
  ///   each note.
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
    try verifyNotes(&found)
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
    try verifyCounts(&found)
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
    let key = KeySpace.records.prefix(ofCache: cache.id) + record.key
    guard content.expiresAt != nil, content.sequence <= catalog.notedSequence,
      found.noted?.contains(key.hashValue) == false
    else { return }
    found.problems.append(
      Problem(
        cache: cache, key: record.key,
        message: "it expires but has no note"))
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

  private func verifyNotes(_ found: inout Verification) throws(InspectionError) {
    do throws(StoreError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.notes.rawValue]))
      while try cursor.next() {
        found.packs += 1
        cursor.withEntry { key, value in
          let pack = NotePack(key: key)
          let prefix = pack.map { KeySpace.records.prefix(ofCache: $0.cacheID) } ?? []
          let count = pack?.forEachKey(in: value) { key in
            found.noted?.insert((prefix + key).hashValue)
          }
          found.notes += count ?? 0
          guard count == nil else { return }
          found.noted = nil
          found.problems.append(
            Problem(
              cache: pack.map { catalog.cache(numbered: $0.cacheID) },
              message: "a row of notes is damaged"))
        }
      }
    } catch .corrupt(_, _, let message?) {
      found.noted = nil
      found.problems.append(Problem(message: "the notes: " + withUserPath(message)))
    } catch {
      throw failure(error)
    }
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
