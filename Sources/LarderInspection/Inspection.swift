package import Foundation
package import Larder

/// Read-only access to a store or a backup, as it was at one moment.
///
/// It reads a snapshot of the store's files in a private directory, so the store may be open in
/// another process, and nothing in its directory changes. Commands return a ``Report``.
///
/// Copies share the snapshot, which is removed with the last of them. Several threads may use it.
package struct Inspection: Sendable {
  /// The path of the store's directory, with links resolved.
  package let path: String
  /// How the store's files were captured.
  package let method: StoreCapture.Method
  /// The moment for which ages and states are reported.
  package let now: Date

  /// Shows how far a scan of records is; nil to show nothing.
  var progress: ProgressLine?

  private let opened: OpenSnapshot
  let catalog: Catalog
  /// Damage found before any record was read.
  private(set) var damage: [String]
  /// The backup's manifest and files; nil for a store.
  let backup: Backup?
  /// What is wrong with the store's marker, although it can be read; nil for nothing.
  let markerFault: String?
  /// An incomplete end of the logs, which need not be damage; nil if the logs are intact.
  let tornEnd: String?

  /// The version of the program, in words.
  ///
  /// There is no release yet, so it is told by what can be read.
  package static let version =
    "unreleased; reads stores up to format \(StoreMarker.formatVersion), and exports of version "
    + "\(exportVersion)"

  var snapshot: StoreSnapshot { opened.snapshot }
  var engine: LevelDBEngine { opened.engine }

  /// Takes a snapshot of the store in a directory and opens it.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - now: The moment at which lifetimes are evaluated.
  ///   - linking: Whether hard links are tried before the files are copied.
  ///   - key: The key that opens its sealed records; nil to leave them sealed.
  ///   - progress: Shows how far a command is; nil to show nothing.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no store,
  ///   `unsupported` if another program or a later version wrote it, `damaged` if it cannot be
  ///   opened, `io` if it cannot be read or captured.
  package init(
    at directory: String, now: Date, linking: Bool = true, key: UserKey? = nil,
    progress: ProgressLine? = nil
  ) throws(InspectionError) {
    let path = try FileAccess.directory(directory)
    self.path = path
    self.now = now
    self.progress = progress
    let found = try Self.identify(path)
    (backup, damage) = (found.backup, found.damage)
    let snapshot: StoreSnapshot
    do {
      snapshot = try StoreSnapshot(of: path, linking: linking, named: "kvinspect-")
    } catch {
      throw InspectionError(error).advisingRepair
    }
    method = snapshot.capture.method
    // After the capture: a marker is replaced before the first segment is created.
    markerFault = backup == nil ? try Self.markerFault(in: path, of: snapshot) : nil
    do throws(InspectionError) {
      let logs = try Self.cutLogs(of: snapshot)
      tornEnd = logs.torn
      damage += logs.damage.map { [$0] } ?? []
      opened = OpenSnapshot(snapshot, try Self.open(snapshot))
      catalog = try Catalog(readFrom: opened.engine, try Self.opener(of: opened.engine, key))
    } catch {
      throw error.naming(path, insteadOf: snapshot.path).advisingRepair
    }
    damage += lostWrites.map { [$0] } ?? []
    damage += catalog.damage
  }

  private static func opener(
    of engine: LevelDBEngine, _ key: UserKey?
  ) throws(InspectionError) -> RecordOpener? {
    guard let key else { return nil }
    #if Encryption
      do throws(StoreError) {
        if let opener = try RecordOpener(of: engine, key: key.bytes, lostName: key.lostName) {
          return opener
        }
      } catch {
        throw InspectionError(error)
      }
    #endif
    throw InspectionError(.usage, "the store is not sealed, so it needs no key")
  }

  /// Opens another store, or a backup, with the same key if it is sealed.
  ///
  /// - Throws: As ``init(at:now:linking:key:progress:)``.
  package func another(at directory: String, key: UserKey?) throws(InspectionError) -> Inspection {
    let other = try Inspection(at: directory, now: now)
    guard let key, other.catalog.isSealed else { return other }
    return try Inspection(at: directory, now: now, key: key)
  }

  /// Throws an ``InspectionError`` with the status `usage` if the store is sealed and was opened
  /// without its key.
  func requireKey() throws(InspectionError) {
    guard !catalog.isSealed || catalog.opener != nil else {
      throw InspectionError(.usage, "the values in \(path) are sealed; --key-file opens them")
    }
  }

  /// Removes the snapshots of this process and exits; for signals and closed pipes.
  package static func removeSnapshots(thenExit code: Int32) -> Never {
    PrivateDirectory.removeAll(thenExit: code)
  }

  /// Reads a backup's manifest, or checks a store's marker, and collects their damage.
  static func identify(
    _ path: String
  ) throws(InspectionError) -> (backup: Backup?, damage: [String]) {
    guard FileAccess.bytes(of: "\(path)/\(BackupManifest.fileName)") != nil else {
      return (nil, try checkMarker(in: path).map { [$0] } ?? [])
    }
    do {
      return (try Backup(at: path), [])
    } catch .corrupt(_, _, let message?) {
      return (nil, [message])
    } catch {
      throw InspectionError(error)
    }
  }

  /// Checks a store's marker and describes damage; nil if there is none.
  private static func checkMarker(in path: String) throws(InspectionError) -> String? {
    let marker = "\(path)/\(StoreMarker.fileName)"
    guard FileAccess.bytes(of: "\(path)/CURRENT") != nil else {
      throw try missingCurrent(in: path, hasMarker: FileAccess.bytes(of: marker) != nil)
    }
    guard let bytes = try FileAccess.read(marker, limit: StoreMarker.byteLimit) else {
      throw InspectionError(
        .unsupported,
        "\(path) is a LevelDB database, but not a Larder store. `files`, `wal`, `table` and `find` "
          + "show what is in it, and `import --kind leveldb` makes a store of it")
    }
    guard let version = StoreMarker.formatVersion(in: bytes) else {
      return "\(marker) does not begin with the format version"
    }
    do {
      try StoreMarker.checkKnown(version, of: path)
    } catch {
      throw InspectionError(error)
    }
    return nil
  }

  /// Describes a marker that does not keep out programs that know no segments, or no sealed
  /// records; nil for none.
  private static func markerFault(
    in path: String, of snapshot: StoreSnapshot
  ) throws(InspectionError) -> String? {
    let marker = "\(path)/\(StoreMarker.fileName)"
    guard let bytes = try FileAccess.read(marker, limit: StoreMarker.byteLimit),
      let version = StoreMarker.formatVersion(in: bytes)
    else { return nil }
    if version < StoreMarker.sealedVersion, FileAccess.bytes(of: "\(path)/\(KeyFile.name)") != nil {
      return "\(marker) says format \(version), but the store has data keys, which are in format "
        + "\(StoreMarker.sealedVersion): a program that knows none would open it"
    }
    guard snapshot.segments.count > 0, version < StoreMarker.segmentVersion else { return nil }
    return "\(marker) says format \(version), but the store has segments, which are in format "
      + "\(StoreMarker.segmentVersion): a program that knows no segments would open it"
  }

  /// The error for a directory without CURRENT: a damaged store, or none.
  private static func missingCurrent(
    in path: String, hasMarker: Bool
  ) throws(InspectionError) -> InspectionError {
    let message = "the store is damaged: \(path)/CURRENT is missing"
    guard try DatabaseFiles.names(in: path).contains(where: { DataFile($0) != nil }) else {
      guard hasMarker else {
        return InspectionError(.unavailable, "there is no store at \(path)")
      }
      return InspectionError(
        .damaged,
        "\(message), and so is every table and log, or its creation was interrupted. Restore a "
          + "backup; a program that opens the store begins an empty one")
    }
    if hasMarker { return InspectionError(.damaged, message).advisingRepair }
    let line = StoreMarker.contents(of: StoreMarker.formatVersion).dropLast()
    return InspectionError(
      .damaged,
      "\(message), and so is \(StoreMarker.fileName). If it was a store, write the line "
        + "\"\(line)\" to \(path)/\(StoreMarker.fileName)"
    ).advisingRepair
  }

  /// Truncates the copies of the logs before their first unreadable record.
  ///
  /// - Returns: A description of an end that is incomplete, because of a power loss or a write in
  ///   progress, and one of damage.
  private static func cutLogs(
    of snapshot: StoreSnapshot
  ) throws(InspectionError) -> (torn: String?, damage: String?) {
    let survey: LogSurvey
    do {
      survey = try snapshot.cutLogs()
    } catch {
      throw InspectionError(error)
    }
    switch survey.finding {
    case .whole: return (nil, nil)
    case .torn(let index, let place):
      let log = survey.logs[index]
      let later = survey.logs[(index + 1)...].contains { $0.firstSequence != nil }
      let what = "\(snapshot.source)/\(log.name) is torn at byte \(place)"
      guard place == 0 && log.firstSequence != nil || later else { return (what, nil) }
      return (nil, what + ", so later logs cannot be used")
    case .damaged(_, _, let message):
      return (nil, message + "; later writes are not shown")
    }
  }

  /// The writes that an opening of the store would set aside, because a payload is lost; nil if it
  /// would keep all.
  private var lostWrites: String? {
    engine.recovery?.lostPayload.map { payload in
      let count = engine.recovery?.lostCommits.map { ", at least \(Amount.text($0.count))" } ?? ""
      return withUserPath(payload)
        + "; opening the store sets aside this write and all later ones\(count)"
    }
  }

  private static func open(
    _ snapshot: StoreSnapshot
  ) throws(InspectionError) -> LevelDBEngine {
    do {
      return try snapshot.open(
        options: Store.Options().engineOptions, cause: "kvinspect only reads")
    } catch {
      throw InspectionError(error)
    }
  }

  /// Replaces the snapshot's path in a message with the store's.
  func withUserPath(_ message: String) -> String {
    message.replacing(snapshot.path, with: path)
  }

  /// An error of the engine, with the store's path.
  func failure(_ error: StoreError) -> InspectionError {
    InspectionError(error).naming(path, insteadOf: snapshot.path)
  }
}

extension InspectionError {
  /// The error of a command for an error of a store or of another database.
  init(_ error: StoreError, of place: String) {
    switch error {
    case .locked(let pid):
      let owner = pid.map { "process \($0)" } ?? "another process"
      self.init(.unavailable, "the \(place) is open in \(owner)")
    case .corrupt(let cache, _, let file):
      self.init(.damaged, "the \(place) is damaged: \(file ?? "cache \(cache)")")
    case .incompatible(let message): self.init(.unsupported, message)
    case .invalidArgument(let message): self.init(.usage, message)
    case .io(let message): self.init(.io, message)
    case .diskFull: self.init(.io, "the disk is full")
    case .writesDisabled(let cause): self.init(.io, "the \(place) cannot be written: \(cause)")
    case .readOnly(let cause): self.init(.io, "the \(place) is read-only: \(cause)")
    default: self.init(.io, "\(error)")
    }
  }

  /// The error with what to do next, if the store is damaged.
  fileprivate var advisingRepair: InspectionError {
    guard status == .damaged else { return self }
    return InspectionError(
      status, description + ". `kvinspect repair` copies what can be read to a new store")
  }

  func naming(_ path: String, insteadOf other: String) -> InspectionError {
    InspectionError(status, description.replacing(other, with: path))
  }
}

/// A snapshot, and the engine that reads it, which is closed before the snapshot is removed.
private final class OpenSnapshot: Sendable {
  let snapshot: StoreSnapshot
  let engine: LevelDBEngine

  init(_ snapshot: StoreSnapshot, _ engine: LevelDBEngine) {
    (self.snapshot, self.engine) = (snapshot, engine)
  }

  deinit {
    do {
      try engine.close()
    } catch {
      // The snapshot is about to be removed; nothing can be lost.
    }
  }
}
