import Foundation
import Larder
import LarderEngine

/// What a sweep would find in a store.
struct Backlog {
  /// Rows of the index, and those of them that are due.
  var indexRows = 0
  var dueRows = 0
  /// The records that it would delete, and their size, keys included.
  var records = 0
  var bytes = 0
  /// Whether all of the index could be read.
  var isWhole = true
}

extension Inspection {
  /// What a sweep would find at ``now``.
  ///
  /// - Complexity: One step for each row of the index, one lookup and one checksum for each that is
  ///   due. Memory for the keys of what would be deleted.
  func backlog() throws(InspectionError) -> Backlog {
    var backlog = Backlog()
    var deleted: Set<[UInt8]> = []
    do throws(EngineError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.expiry.rawValue]))
      while try cursor.next() {
        let key = cursor.withEntry { key, _ in key.withUnsafeBytes { Array($0) } }
        backlog.indexRows += 1
        guard let row = IndexRow(key), Double(row.bucket) <= now.timeIntervalSinceReferenceDate,
          let registration = catalog.cache(numbered: row.id).registration,
          registration.lifetime.expiry(from: now) != nil
        else { continue }
        backlog.dueRows += 1
        let recordKey = KeySpace.records.prefix(ofCache: row.id) + row.key
        guard let bytes = try sizeOfExpired(recordKey, registration),
          deleted.insert(recordKey).inserted
        else { continue }
        backlog.records += 1
        backlog.bytes += row.key.count + bytes
      }
    } catch .corrupt {
      backlog.isWhole = false
    } catch {
      throw failure(error)
    }
    return backlog
  }

  /// How large a record is if a sweep would delete it.
  private func sizeOfExpired(
    _ recordKey: [UInt8], _ registration: Registration
  ) throws(EngineError) -> Int? {
    let value: [UInt8]?
    do throws(EngineError) {
      value = try engine.get(recordKey.span.bytes)
    } catch .corrupt {
      return nil
    }
    guard let value else { return nil }
    do throws(RecordFault) {
      let record = try Record(value.span.bytes, under: recordKey.span.bytes)
      guard Int(record.schemaVersion) <= registration.schemaVersion,
        registration.lifetime.freshness(of: record.savedAt, at: now) == .expired
      else { return nil }
      return value.count
    } catch {
      return nil
    }
  }
}
