import Foundation
import Larder
import LarderTestSupport

/// A small store with two tables and a log with entries, and the paths of its backups.
final class BackupFixture {
  let directory: TemporaryDirectory
  let engine: LevelDBEngine

  var store: String { directory.path("store") }
  var backup: String { directory.path("backup") }
  var restored: String { directory.path("restored") }
  /// The temporary path of a directory while it is being made.
  func partial(_ name: String) -> String { directory.path(".\(name).larder-partial") }

  init(files: any StoreFiles = SystemFiles()) throws {
    directory = try TemporaryDirectory()
    var options = LevelDBOptions()
    options.files = files
    engine = try LevelDBEngine(at: directory.path("store"), options: options)
    try fillForBackup(engine)
  }

  deinit {
    do {
      try engine.close()
    } catch {
      // The store's directory is about to be deleted.
    }
  }

  /// The names in the directory of the store and its copies.
  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
  }

  func makeBackup() throws {
    try engine.backup(to: backup, date: 788_918_400.1)
  }

  func restore() throws {
    try Backup(at: backup).restore(to: restored)
  }
}

/// Puts entries into two tables, and the last ones only into the log.
func fillForBackup(_ engine: LevelDBEngine) throws {
  for round in 0..<3 {
    for number in 0..<8 { try engine.put("\(round)-\(number)", "value \(round) \(number)") }
    if round < 2 { try engine.compact(EngineRange(prefix: Array("\(round)".utf8))) }
  }
}

/// Opens the store at a path, reads all entries, and closes it.
func entriesOfStore(
  at path: String, files: any StoreFiles = SystemFiles()
) throws -> [Entry] {
  var options = LevelDBOptions()
  options.files = files
  options.createIfMissing = false
  let engine = try LevelDBEngine(at: path, options: options)
  let entries = try engine.entries()
  try engine.close()
  return entries
}

/// The entries that ``fillForBackup(_:)`` writes.
let entriesForBackup = (0..<3).flatMap { round in
  (0..<8).map { Entry("\(round)-\($0)", "value \(round) \($0)") }
}
