import Foundation

/// The settings of a cache whose registration is lost, as far as its records show them.
///
/// Keys count as bytes: nothing in a record tells of which kind its key is. The lifetime is the
/// shortest one that a record was saved with, so no entry is fresh for longer than it was. A record
/// whose limit has shortened its time does not count: it ends at the limit, as it says itself.
struct RecoveredSettings {
  private var coder = PayloadFormat.bytes.rawValue
  private var schemaVersion = 0
  private var shortestSeconds: Double?
  private var features: EntryFeatures = []

  /// Reads the records of the cache.
  ///
  /// - Complexity: One scan, without payloads in segments. Records that cannot be read are skipped.
  init(ofCache id: UInt64, in engine: LevelDBEngine) throws(StoreError) {
    let prefix = KeySpace.records.prefix(ofCache: id)
    do throws(StoreError) {
      let cursor = try engine.headCursor(over: EngineRange(prefix: prefix))
      while try cursor.next() {
        let count = cursor.valueCount
        cursor.withEntry { key, head in
          do throws(RecordFault) {
            add(try Record(head: head, of: count, under: key))
          } catch {
            // It shows no settings.
          }
        }
      }
    } catch .corrupt {
      // Thrown at the end of the scan: everything readable was read.
    }
  }

  private mutating func add(_ record: Record) {
    coder = record.coder
    schemaVersion = max(schemaVersion, Int(record.schemaVersion))
    if record.tags != nil { features.insert(.tags) }
    guard record.ownLifetime == nil else {
      features.insert(.ownLifetimes)
      return
    }
    // Its limit has shortened its time, which says nothing of other records.
    if let end = record.slidesUntil, let expiresAt = record.expiresAt, expiresAt >= end {
      features.insert(.ownLifetimes)
      return
    }
    guard let seconds = record.expiresAt?.timeIntervalSince(record.savedAt), seconds.isFinite,
      seconds >= 0
    else { return }
    shortestSeconds = min(shortestSeconds ?? seconds, seconds)
  }

  /// The registration of the cache under its old id.
  func registration(id: UInt64) -> Registration {
    var registration = Registration(
      keys: .bytes, coder: coder, schemaVersion: schemaVersion,
      lifetime: shortestSeconds.map(Lifetime.seconds) ?? .unlimited)
    registration.id = id
    if !features.isEmpty { registration.features = features }
    return registration
  }
}
