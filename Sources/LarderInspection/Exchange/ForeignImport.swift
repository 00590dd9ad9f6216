import Foundation
import Larder

// MARK: - Files

extension StoreImport {
  /// Adds each file in a directory and in the directories in it, by relative path.
  ///
  /// Symbolic links are not followed, and not added. A date in the future becomes `now`.
  ///
  /// - Throws: An ``InspectionError`` that names a file with a name that is not UTF-8, one that
  ///   cannot be read, or one that is too large, unless they are left out.
  mutating func addFiles(
    in directory: String, to cache: NewCache, now: Date, leavingOut leftOut: inout LeftOut
  ) throws(InspectionError) {
    try add(cache, keys: .text)
    let tree = try FileTree(of: directory)
    var names: [String] = []
    var unnamed: [[UInt8]] = []
    for path in tree.files {
      if let name = String(validating: path, as: UTF8.self) {
        names.append(name)
      } else {
        unnamed.append(path)
      }
    }
    let share =
      leftOut.skipsUnreadable
      ? ""
      : " (\(Amount.text(unnamed.count)) of \(Amount.text(tree.files.count)) names are not)"
    for path in unnamed {
      let place = "\(directory)/\(String(escapingName: path))"
      try leftOut.addOrThrow(InspectionError(.usage, "\(place): the name is not UTF-8\(share)"))
    }
    for (path, reason) in tree.unlisted {
      let place = "\(directory)/\(String(escapingName: path))"
      try leftOut.addOrThrow(InspectionError(.io, "cannot list \(place): \(reason)"))
    }
    for name in names {
      let path = "\(directory)/\(name)"
      let file: (bytes: [UInt8], changedAt: Date)
      do throws(InspectionError) {
        file = try Self.readFile(path)
      } catch {
        try leftOut.addOrThrow(error)
        continue
      }
      try add(
        file.bytes, under: Array(name.utf8), called: path, to: cache,
        savedAt: min(file.changedAt, now), leavingOut: &leftOut)
    }
  }

  private static func readFile(
    _ path: String
  ) throws(InspectionError) -> (bytes: [UInt8], changedAt: Date) {
    let changedAt = try FileAccess.changeDate(ofFile: path)
    do throws(StoreError) {
      try Record.checkLimit(ofPayload: FileAccess.bytes(of: path) ?? 0)
    } catch {
      let error = InspectionError(error)
      throw InspectionError(error.status, "\(path): \(error.description)")
    }
    guard let changedAt, let bytes = try FileAccess.read(path) else {
      throw InspectionError(.io, "\(path) was deleted during the import")
    }
    return (bytes, changedAt)
  }
}

// MARK: - LevelDB

extension StoreImport {
  /// Adds each entry of a LevelDB database, of which a snapshot is read.
  ///
  /// Parts of the logs that cannot be read are left out, as LevelDB does.
  ///
  /// - Throws: An ``InspectionError`` with the status `damaged` for damaged tables, `unsupported`
  ///   for an order of keys or a compression that this version does not read, `usage` for a store
  ///   or an entry that is too large, unless that is left out; `unavailable`, `io`.
  mutating func addRows(
    ofDatabaseAt path: String, to cache: NewCache, now: Date, leavingOut leftOut: inout LeftOut
  ) throws(InspectionError) {
    guard try !DatabaseFiles.isStore(path) else {
      throw InspectionError(.usage, "\(path) is a store: write its entries with export")
    }
    guard FileAccess.bytes(of: "\(path)/CURRENT") != nil else {
      guard try DatabaseFiles.names(in: path).contains(where: { DataFile($0) != nil }) else {
        throw InspectionError(.unavailable, "there is no database at \(path)")
      }
      throw InspectionError(.damaged, "the database is damaged: \(path)/CURRENT is missing")
    }
    try add(cache, keys: .bytes)
    let snapshot: StoreSnapshot
    do throws(StoreError) {
      snapshot = try StoreSnapshot(of: path, named: "kvinspect-")
    } catch {
      throw InspectionError(error, of: "database")
    }
    guard snapshot.capture.manifest.ordersBytes else {
      let comparator = snapshot.capture.manifest.comparator ?? ""
      throw InspectionError(
        .unsupported, "\(path): not supported: comparator \(comparator.shortened)")
    }
    do {
      for loss in try snapshot.rewriteForeignLogs() { leftOut.add(loss.description(in: path)) }
      let database = try snapshot.open(cause: "kvinspect only reads")
      try addRows(of: database, to: cache, now: now, leavingOut: &leftOut)
      try database.close()
    } catch let error as StoreError {
      if case .corrupt = error, let message = try Self.unsupportedBlock(in: snapshot) {
        throw InspectionError(.unsupported, message)
      }
      throw InspectionError(error, of: "database").naming(path, insteadOf: snapshot.path)
    } catch {
      throw InspectionError(error)
    }
  }

  private mutating func addRows(
    of database: LevelDBEngine, to cache: NewCache, now: Date, leavingOut leftOut: inout LeftOut
  ) throws {
    let cursor = try database.cursor(over: EngineRange())
    while try cursor.next() {
      let (key, value) = cursor.withEntry { key, value in ([UInt8](key), [UInt8](value)) }
      try add(
        value, under: key, called: KeyForm.utf8.text(of: key, kind: .text).shortened, to: cache,
        savedAt: now, leavingOut: &leftOut)
    }
  }

  /// The first block of a compression that LevelDB does not read, if no block is damaged.
  private static func unsupportedBlock(
    in snapshot: StoreSnapshot
  ) throws(InspectionError) -> String? {
    var found: String?
    for name in try DatabaseFiles.names(in: snapshot.path).sorted() {
      guard case .table = DataFile(name),
        let bytes = try FileAccess.read("\(snapshot.path)/\(name)", limit: .max)
      else { continue }
      do throws(TableFile.Fault) {
        let table = try TableFile(bytes)
        for place in table.blocks { _ = try table.block(at: place) }
      } catch {
        guard error.isUnsupported else { return nil }
        found = found ?? "\(snapshot.source)/\(name), \(error)"
      }
    }
    return found
  }
}

extension LogLoss {
  fileprivate func description(in directory: String) -> String {
    let what =
      switch kind {
      case .incomplete: "an incomplete write of \(Amount.text(byteCount)) bytes"
      case .damaged: "\(Amount.text(byteCount)) damaged bytes"
      case .malformed: "a malformed batch of \(Amount.text(byteCount)) bytes"
      }
    return "\(what) in \(directory)/\(log) at byte \(offset)"
  }
}

// MARK: - Entries

extension StoreImport {
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

  /// Adds an entry, or leaves it out if it is too large.
  private mutating func add(
    _ value: [UInt8], under key: [UInt8], called name: String, to cache: NewCache, savedAt: Date,
    leavingOut leftOut: inout LeftOut
  ) throws(InspectionError) {
    let record = ImportedRecord(
      coder: cache.coder.rawValue, schemaVersion: 1, savedAt: savedAt,
      expiresAt: cache.lifetime.expiry(from: savedAt), payload: value)
    do {
      try add(record, under: key, in: cache.name)
    } catch StoreError.invalidArgument(let message) {
      try leftOut.addOrThrow(InspectionError(.usage, "\(name): \(message)"))
    } catch {
      throw InspectionError(error)
    }
  }
}
