package import Foundation
import Larder
package import LarderEngine

/// A store as it was at one moment, or a backup of one, open for looking into.
///
/// It reads a snapshot of the store's files in a private directory, so the store may be open in
/// another process, and nothing in its directory is changed. Commands write to any
/// `TextOutputStream` and answer what they found as an ``Outcome``.
///
/// An inspection belongs to one thread.
package final class Inspection {
  /// The store's directory, its path without links.
  package let path: String
  /// How the store's files came into the snapshot.
  package let method: StoreCapture.Method
  /// The moment that ages and states are told for.
  package let now: Date

  let snapshot: StoreSnapshot
  let engine: LevelDBEngine
  let catalog: Catalog
  /// What was found damaged before any record was read.
  private(set) var damage: [String]
  /// What a backup says of itself; nil when it is a store.
  let backup: Backup?
  /// What of the store's logs is not shown, and why it need not be damage; nil for nothing.
  let tornEnd: String?

  /// Takes a snapshot of the store in a directory and opens it.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - now: The moment to judge lifetimes by.
  ///   - linking: Whether hard links are tried before the files are copied.
  /// - Throws: An ``InspectionError`` with the status `unavailable` when there is no store,
  ///   `unsupported` when it is another program's or a later version's,
  ///   `damaged` when it cannot be opened at all, `io`, also when it could not be captured.
  package init(
    at directory: String, now: Date, linking: Bool = true
  ) throws(InspectionError) {
    guard let path = try FileAccess.realPath(directory), FileAccess.isDirectory(path) else {
      throw InspectionError(.unavailable, "there is no store at \(directory)")
    }
    self.path = path
    self.now = now
    let found = try Self.look(at: path)
    (backup, damage) = (found.backup, found.damage)
    do {
      snapshot = try StoreSnapshot(of: path, linking: linking, named: "kvinspect-")
    } catch {
      throw InspectionError(error)
    }
    method = snapshot.capture.method
    do throws(InspectionError) {
      let logs = try Self.cutLogs(of: snapshot)
      tornEnd = logs.torn
      damage += logs.damage.map { [$0] } ?? []
      engine = try Self.open(snapshot)
      catalog = try Catalog(readFrom: engine)
    } catch {
      throw error.naming(path, insteadOf: snapshot.path)
    }
    damage += catalog.damage
  }

  /// Removes the snapshots of this process and ends it: for signals, and for a closed pipe.
  package static func removeSnapshots(thenExit code: Int32) -> Never {
    PrivateDirectory.removeAll(thenExit: code)
  }

  deinit {
    do {
      try engine.close()
    } catch {
      // The directory that it reads is about to go; nothing can be lost.
    }
  }

  /// Looks whether a directory is a store or a backup, and what is wrong with what says so if the
  /// rest may still be read.
  private static func look(
    at path: String
  ) throws(InspectionError) -> (backup: Backup?, damage: [String]) {
    guard FileAccess.bytes(of: "\(path)/\(BackupManifest.fileName)") != nil else {
      return (nil, try checkMarker(in: path).map { [$0] } ?? [])
    }
    do {
      return (try Backup(at: path), [])
    } catch .corrupt(let message) {
      return (nil, [message])
    } catch {
      throw InspectionError(error)
    }
  }

  /// Checks a store's marker, and says what is wrong with it.
  private static func checkMarker(in path: String) throws(InspectionError) -> String? {
    guard FileAccess.bytes(of: "\(path)/CURRENT") != nil else {
      throw InspectionError(.unavailable, "there is no store at \(path)")
    }
    let marker = "\(path)/\(StoreMarker.fileName)"
    guard let bytes = try FileAccess.read(marker, limit: StoreMarker.byteLimit) else {
      throw InspectionError(.unsupported, "\(path) is a LevelDB database of another program")
    }
    guard let version = StoreMarker.formatVersion(in: bytes) else {
      return "\(marker) does not begin with the format version"
    }
    guard version <= StoreMarker.formatVersion else {
      throw InspectionError(.unsupported, "\(path) has format version \(version)")
    }
    return nil
  }

  /// Ends the copies of the logs before the first thing in them that cannot be read.
  ///
  /// - Returns: What was found, in words: an end that was torn off by a power loss, or is still
  ///   being written, and damage.
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
      return (nil, what + ", and what later logs hold cannot be used")
    case .damaged(_, _, let message):
      return (nil, message + "; what was written from there on is not shown")
    }
  }

  private static func open(
    _ snapshot: StoreSnapshot
  ) throws(InspectionError) -> LevelDBEngine {
    do {
      return try snapshot.open(cause: "kvinspect only reads")
    } catch {
      throw InspectionError(error)
    }
  }

  /// A message of the engine about the store's directory and not about the snapshot's.
  func inUsersWords(_ message: String) -> String {
    message.replacing(snapshot.path, with: path)
  }

  /// A failure of the engine, likewise.
  func failure(_ error: EngineError) -> InspectionError {
    InspectionError(error).naming(path, insteadOf: snapshot.path)
  }
}

extension InspectionError {
  /// The same failure as a tool says it.
  init(_ error: EngineError) {
    switch error {
    case .closed: self.init(.io, "the snapshot was closed")
    case .locked: self.init(.unavailable, "the snapshot is locked")
    case .writesDisabled(let cause): self.init(.io, "the snapshot cannot be written: \(cause)")
    case .diskFull: self.init(.io, "there is no room for the snapshot")
    case .io(let message): self.init(.io, message)
    case .corrupt(let message): self.init(.damaged, "the store is damaged: \(message)")
    case .incompatible(let message): self.init(.unsupported, message)
    case .invalidArgument(let message): self.init(.usage, message)
    case .overBudget: self.init(.io, "the snapshot has a budget")
    case .readOnly(let cause): self.init(.io, "the snapshot is not written to: \(cause)")
    }
  }

  func naming(_ path: String, insteadOf other: String) -> InspectionError {
    InspectionError(status, description.replacing(other, with: path))
  }
}
