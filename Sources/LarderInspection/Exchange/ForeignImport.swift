import Foundation
import Larder
import LarderBytes
import LarderCoding
import LarderEngine

extension StoreImport {
  /// Adds each file in a directory and in the directories in it, by relative path.
  ///
  /// Symbolic links are not followed, and not added. A date in the future becomes `now`.
  mutating func addFiles(
    in directory: String, to cache: NewCache, now: Date
  ) throws(InspectionError) {
    try add(cache, keys: .text)
    let names: [String]
    do {
      names = try FileManager.default.subpathsOfDirectory(atPath: directory).sorted()
    } catch {
      throw InspectionError(.io, "cannot list \(directory): \(error)")
    }
    for name in names {
      let path = "\(directory)/\(name)"
      guard let changedAt = try FileAccess.changeDate(ofFile: path) else { continue }
      guard let bytes = try FileAccess.read(path) else {
        throw InspectionError(.io, "\(path) was deleted during the import")
      }
      try add(bytes, under: Array(name.utf8), called: name, to: cache, savedAt: min(changedAt, now))
    }
  }

  /// Adds each entry of a LevelDB database, of which a snapshot is read.
  mutating func addRows(
    ofDatabaseAt path: String, to cache: NewCache, now: Date
  ) throws(InspectionError) {
    guard FileAccess.bytes(of: "\(path)/CURRENT") != nil else {
      throw InspectionError(.unavailable, "there is no database at \(path)")
    }
    guard FileAccess.bytes(of: "\(path)/\(StoreMarker.fileName)") == nil else {
      throw InspectionError(.usage, "\(path) is a store: write its entries with export")
    }
    try add(cache, keys: .bytes)
    let database: LevelDBEngine
    do {
      let snapshot = try StoreSnapshot(of: path, named: "kvinspect-")
      if case .damaged(_, _, let message) = try snapshot.cutLogs().finding {
        throw EngineError.corrupt(message)
      }
      database = try snapshot.open(cause: "kvinspect only reads")
    } catch {
      throw InspectionError(error)
    }
    try addRows(of: database, to: cache, now: now)
    do {
      try database.close()
    } catch {
      throw InspectionError(error)
    }
  }

  private mutating func addRows(
    of database: LevelDBEngine, to cache: NewCache, now: Date
  ) throws(InspectionError) {
    let cursor: any EngineCursor
    do {
      cursor = try database.cursor(over: EngineRange())
    } catch {
      throw InspectionError(error)
    }
    while true {
      do throws(EngineError) {
        guard try cursor.next() else { return }
      } catch {
        throw InspectionError(error)
      }
      let (key, value) = cursor.withEntry { key, value in ([UInt8](key), [UInt8](value)) }
      try add(value, under: key, called: KeyForm.hex(key), to: cache, savedAt: now)
    }
  }

  private mutating func add(
    _ cache: NewCache, keys kind: KeyKind
  ) throws(InspectionError) {
    let registration = Registration(
      keys: kind, coder: cache.coder.rawValue, schemaVersion: 1, lifetime: cache.lifetime)
    do {
      try add(registration, named: cache.name)
    } catch {
      throw InspectionError(error)
    }
  }

  private mutating func add(
    _ value: [UInt8], under key: [UInt8], called name: String, to cache: NewCache, savedAt: Date
  ) throws(InspectionError) {
    let record = ImportedRecord(
      coder: cache.coder.rawValue, schemaVersion: 1, savedAt: savedAt,
      expiresAt: cache.lifetime.expiry(from: savedAt), payload: value)
    do {
      try add(record, under: key, in: cache.name)
    } catch {
      throw InspectionError(error).about(name)
    }
  }
}

extension InspectionError {
  fileprivate func about(_ name: String) -> InspectionError {
    InspectionError(status, "\(name): \(description)")
  }
}
