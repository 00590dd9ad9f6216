// A backup is a directory with a store's tables, logs, segments, CURRENT and MANIFEST, and
// LARDER.backup.
//
// Tables, and segments with a seal, are hard links to the store's files where links are possible.
// They can be shared because their bytes never change: LevelDB creates and deletes tables, and
// deleting one removes a name. LevelDB would empty a table if it used the table's number again,
// which happens if a power loss takes back the edit that named the table; so that edit is made
// durable first. Logs and the MANIFEST are appended to, so they are copied. The segment that is
// appended to is sealed before the store is captured, and collections of segments wait.
//
// A backup has no marker, so it is not a store, and `StoreDirectory` refuses to open it: opening
// would write to the logs and the MANIFEST, and delete files of the backup. If another program
// opens it as a LevelDB database, the backup is damaged, but the store is not: with CURRENT and the
// MANIFEST, LevelDB recognises the tables as its own, and uses no number again. (Without them it
// would take the directory for an empty one, count from 1, and sooner or later open an existing
// table for writing.)

/// A backup in a directory.
package struct Backup: Sendable {
  package let manifest: BackupManifest
  private let path: String
  private let files: any StoreFiles

  /// Reads the manifest of the backup in the directory at `path`.
  ///
  /// - Throws: ``StoreError/incompatible(_:)`` when it is not a backup, or has a later version;
  ///   ``StoreError/corrupt(_:)`` when its manifest is damaged; ``StoreError/io(_:)``.
  package init(at path: String, files: any StoreFiles = SystemFiles()) throws(StoreError) {
    guard !path.utf8.contains(0) else { throw .invalidArgument("the path contains a NUL") }
    self.path = try files.realPath(path)
    self.files = files
    let file = "\(self.path)/\(BackupManifest.fileName)"
    guard try files.kind(of: self.path) == .directory,
      let bytes = try files.readIfPresent(file, limit: BackupManifest.byteLimit)
    else { throw .incompatible("\(path) is not a backup: \(BackupManifest.fileName) is missing") }
    manifest = try BackupManifest(bytes, at: file)
  }

  /// The faults of the backup's files, each with the name of the file.
  ///
  /// - Complexity: Reads every file.
  package func faults() throws(StoreError) -> [String] {
    let names = try files.names(in: path)
    let known = Set(
      manifest.files.map(\.name) + [
        BackupManifest.fileName, StoreMarker.guardFileName,
      ])
    var faults = names.subtracting(known).sorted().map { "\(path)/\($0) is not of the backup" }
    for file in manifest.files {
      do throws(StoreError) {
        try require(try files.digest(of: "\(path)/\(file.name)"), of: file)
      } catch .corrupt(_, _, let message?) {
        faults.append(message)
      }
    }
    return faults
  }

  /// Creates a store from the backup, in a directory that is missing or empty.
  ///
  /// All files are checked before any is copied.
  ///
  /// - Throws: ``StoreError/corrupt(_:)`` with the name of a file that is damaged, missing, or not
  ///   of the backup; ``StoreError/invalidArgument(_:)`` and ``StoreError/locked(pid:)`` for
  ///   `target`; ``StoreError/io(_:)``, ``StoreError/diskFull``. `target` is then as it was
  ///   before.
  package func restore(to target: String) throws(StoreError) {
    if let fault = try faults().first { throw .corrupt(fault) }
    var partial = try PartialDirectory(for: target, outside: path, files: files)
    for file in manifest.files {
      let new = "\(partial.path)/\(file.name)"
      try require(try files.copy("\(path)/\(file.name)", to: new), of: file)
      try files.synchronize(new)
    }
    // The marker comes last: without it the directory is not a store.
    try StoreDirectory.writeMarker(
      in: partial.path, of: manifest.storeFormatVersion, files)
    try partial.finish()
  }

  /// Throws unless a file was found as the manifest describes it.
  private func require(
    _ found: FileDigest?, of file: BackupManifest.File
  ) throws(StoreError) {
    guard let found else { throw .corrupt("\(path)/\(file.name) is missing") }
    guard found == file.digest else {
      throw .corrupt("\(path)/\(file.name) is damaged: size or checksum are not the backup's")
    }
  }
}

extension LevelDBEngine {
  package func backup(to target: String, date: Double) throws(StoreError) {
    try enter()
    leave()
    let files = options.files
    var partial = try PartialDirectory(for: target, outside: path, files: files)
    let capture = try capture(into: partial.path)
    var listed: [BackupManifest.File] = []
    for name in try files.names(in: partial.path).sorted() {
      guard let kind = DataFile(name) else { continue }
      let place = "\(partial.path)/\(name)"
      guard let digest = try files.digest(of: place) else { throw .io("\(place) is missing") }
      let file = BackupManifest.File(name: name, digest: digest)
      if case .table(let number) = kind, digest.byteCount != capture.manifest.tables[number]?.bytes
      {
        throw .corrupt("\(path)/\(name) is damaged: it has \(digest.byteCount) bytes")
      }
      // LevelDB syncs a table before it is in the MANIFEST.
      if !capture.isLinked(name) { try files.synchronize(place) }
      listed.append(file)
    }
    // The manifest comes last: without it the directory is not a backup.
    let version = try StoreDirectory.formatVersion(
      ofCopyOf: snapshot?.source ?? path, with: Set(listed.map(\.name)), files)
    let manifest = BackupManifest(storeFormatVersion: version, date: date, files: listed)
    try files.replace("\(partial.path)/\(BackupManifest.fileName)", with: manifest.bytes)
    try partial.finish()
  }

  /// Captures the store, with all writes acknowledged so far.
  private func capture(into directory: String) throws(StoreError) -> StoreCapture {
    // Rows of the capture may name any segment that is there now.
    try collection.withLock { _ throws(StoreError) in
      try captureWithSegments(into: directory)
    }
  }

  private func captureWithSegments(
    into directory: String
  ) throws(StoreError) -> StoreCapture {
    try enter()
    defer { leave() }
    let acknowledged = try queue.withWriter { writer throws(StoreError) in
      writer.sealSegment(noting: true)
      return try writer.endOfLogs()
    }
    var capture = try StoreCapture(of: path, into: directory, files: options.files)
    try capture.copyOpenSegments()
    try capture.makeSourceDurable()
    let survey = try capture.cutLogs()
    switch survey.finding {
    case .whole: break
    case .damaged(_, _, let message): throw .corrupt(message)
    case .torn(let index, let byte):
      // Only the last log may end within a record, and only within one that was not acknowledged.
      let log = survey.logs[index]
      let isNeeded = acknowledged.map { LogPosition(log: log.number, byte: byte) < $0 } ?? false
      guard !isNeeded, index == survey.logs.count - 1 else {
        throw .corrupt("\(path)/\(log.name) is damaged at byte \(byte)")
      }
    }
    // The files were found by their path: check that the directory is still in place.
    _ = try queue.withWriter { writer throws(StoreError) in try writer.endOfLogs() }
    return capture
  }
}

/// A store that is being created beside its directory; unless finished, it is deleted with this
/// value.
package struct NewStore: ~Copyable {
  private var directory: PartialDirectory
  /// The engine of the new store.
  package let engine: LevelDBEngine

  /// Begins a store in a directory that is missing or empty.
  ///
  /// - Parameters:
  ///   - target: The store's directory. Its parent must exist.
  ///   - source: A directory that must not contain `target`, its path without links; nil for none.
  ///   - options: The settings of the engine.
  /// - Throws: ``StoreError/invalidArgument(_:)`` and ``StoreError/locked(pid:)`` for `target`;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``. Nothing is left behind.
  package init(
    at target: String, outside source: String? = nil, options: LevelDBOptions = LevelDBOptions()
  ) throws(StoreError) {
    let directory = try PartialDirectory(for: target, outside: source, files: SystemFiles())
    engine = try LevelDBEngine(at: directory.path, options: options, lock: directory.lock)
    self.directory = directory
  }

  deinit {
    // LevelDB must not write to the directory while its files are deleted.
    do throws(StoreError) {
      try engine.close()
    } catch {
      return
    }
  }

  /// Closes the store, which is then on the device, and gives it its name.
  package mutating func finish() throws(StoreError) {
    try engine.flush()
    try engine.close()
    try directory.finish()
  }
}
