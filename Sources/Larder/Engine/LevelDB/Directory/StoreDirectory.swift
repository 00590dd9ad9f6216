// The files of a store's directory, besides LevelDB's own:
//
//   LARDER        The marker. Its first line is "larder" and the format version of the directory.
//                 It is written before LevelDB creates its first file. It is replaced before the
//                 first segment is created, and before the first record is sealed: older versions
//                 of this library then refuse it.
//   LARDER.lock   The guard. The process that has the store open holds an flock on it and has
//                 written its process id into it; a clean close empties it. It is never deleted: a
//                 lock on a deleted file would keep nobody out.
//   LARDER.aside  The bytes cut off logs after the last power loss. See `Recovery.swift`.
//   LARDER.reserve  Room that is kept while the disk is nearly full. See `Reserve.swift`.
//   LARDER.damaged  The mark of a damaged store. See `Damage.swift`.
//   LARDER.statistics  What the process that has the store open publishes. See
//                 `StatisticsFile.swift`. LARDER.statistics.new is written and takes its place.
//   LARDER.control  The socket over which that process accepts commands. See `ControlSocket.swift`.
//                 LARDER.control.new is bound and takes its place.
//   LARDER.keys   A copy of the data keys of a sealed store. See `DataKeys.swift`.
//                 LARDER.keys.new is written and takes its place.
//   LARDER.probe  Created and removed to find out whether the disk accepts writes again.
//
// LevelDB writes to a directory even when it then refuses to open it, and it recognises a store
// that is open in its own process only by the spelling of its path. So this file rejects a path
// before LevelDB sees it if it is missing, holds other files, has a newer format, is not writable,
// or is open already. A rejected directory is unchanged.
//
// An flock belongs to the open file and not to the process, so the guard also keeps out a second
// handle in this process, by any link or spelling. We must not open LevelDB's own LOCK: closing it
// would release the process's lock on it.

/// The directory of a store, checked and guarded for as long as this value lives.
struct StoreDirectory: ~Copyable {
  private enum Name {
    static let marker = StoreMarker.fileName
    static let newMarker = "LARDER.new"
    static let current = "CURRENT"
  }

  private enum Contents {
    /// Nothing, or the files of a creation that ended before it wrote the marker.
    case nothing
    /// The marker, but no LevelDB files: a creation that ended early.
    case unfinished
    case store
  }

  /// The absolute path without links.
  let path: String
  let lock: any FileGuard
  private let ownsLock: Bool
  /// The contents of CURRENT when the directory was given up; nil if they could not be read.
  private var givenUp: [UInt8]?

  /// Checks and guards the directory at `path`, and creates a store in it if that is allowed.
  ///
  /// - Parameters:
  ///   - path: A directory. A missing one is created; its parent must exist.
  ///   - createIfMissing: Whether a missing or empty directory becomes a store.
  ///   - files: The file layer.
  ///   - heldLock: The directory's guard, if the caller holds it already and keeps it; nil to take
  ///     it.
  /// - Throws: As ``LevelDBEngine/init(at:options:)``. Existing files are then unchanged.
  init(
    at path: String, createIfMissing: Bool, files: any StoreFiles,
    lock heldLock: (any FileGuard)? = nil
  ) throws(StoreError) {
    guard !path.utf8.contains(0) else { throw .invalidArgument("the path contains a NUL") }
    switch try files.kind(of: path) {
    case .directory: break
    case .other: throw .incompatible("\(path) is not a directory")
    case nil:
      guard createIfMissing else { throw .io("no store at \(path)") }
      try files.makeDirectory(path)
      try files.synchronizeDirectory(path + "/..")
    }
    let real = try files.realPath(path)

    _ = try StoreDirectory.inspect(real, createIfMissing: createIfMissing, files)
    try files.requireWritable(real)
    let lock: any FileGuard
    if let heldLock {
      lock = heldLock
    } else {
      lock = try files.takeGuard(at: "\(real)/\(StoreMarker.guardFileName)")
    }

    // Again, because another process may have changed the directory before the guard was taken.
    if try StoreDirectory.inspect(real, createIfMissing: createIfMissing, files) == .nothing {
      try StoreDirectory.writeMarker(in: real, files)
    }
    self.path = real
    self.lock = lock
    ownsLock = heldLock == nil
  }

  deinit {
    if ownsLock { lock.release() }
  }

  /// Lets another process open the store, whose database is closed.
  mutating func giveUp(_ files: any StoreFiles) {
    do throws(StoreError) {
      givenUp = try current(files)
    } catch {
      givenUp = nil
    }
    lock.unlock()
  }

  /// Guards the directory again after ``giveUp(_:)``.
  ///
  /// - Throws: ``StoreError/locked(pid:)`` if it is open elsewhere,
  ///   ``StoreError/changedMeanwhile`` if it was opened elsewhere, ``StoreError/io(_:)`` if it is
  ///   gone or cannot be read. It is not guarded then.
  mutating func takeBack(_ files: any StoreFiles) throws(StoreError) {
    guard try lock.isInPlace() else { throw .io(replaced: path) }
    try lock.lockAgain()
    do throws(StoreError) {
      // Again, because the directory may have been moved before the guard was taken.
      guard try lock.isInPlace() else { throw .io(replaced: path) }
      guard let givenUp, try current(files) == givenUp else { throw .changedMeanwhile }
    } catch {
      lock.unlock()
      throw error
    }
  }

  private func current(_ files: any StoreFiles) throws(StoreError) -> [UInt8] {
    try files.read("\(path)/\(Name.current)", limit: 4096)
  }

  /// The path without links of a store that is opened read-only.
  ///
  /// - Throws: As ``LevelDBEngine/readOnly(at:options:)``. Nothing is changed.
  static func pathOfStore(at path: String) throws(StoreError) -> String {
    let files = SystemFiles()
    guard !path.utf8.contains(0) else { throw .invalidArgument("the path contains a NUL") }
    guard let kind = try files.kind(of: path) else { throw .io("no store at \(path)") }
    guard kind == .directory else { throw .incompatible("\(path) is not a directory") }
    let real = try files.realPath(path)
    _ = try inspect(real, createIfMissing: false, files)
    return real
  }

  private static func inspect(
    _ path: String, createIfMissing: Bool, _ files: any StoreFiles
  ) throws(StoreError) -> Contents {
    if try isStore(path, files) {
      try checkMarker(in: path, files)
      return .store
    }
    let names = try files.names(in: path)
    let contents: Contents
    if names.contains(BackupManifest.fileName) {
      throw .incompatible(
        "\(path) is a backup, which stays as it is: Store.restore(from:to:) makes a store of it")
    } else if names.contains(Name.marker) {
      try checkMarker(in: path, files)
      contents = names.contains(Name.current) ? .store : .unfinished
      let hasData = names.contains { $0.hasSuffix(".ldb") || $0.hasSuffix(".log") }
      if contents == .unfinished, hasData {
        throw .corrupt("\(path)/\(Name.current) is missing, and there is data")
      }
    } else if names.contains(Name.current) {
      throw .incompatible("\(path) is a LevelDB database of another program")
    } else if names.isSubset(of: [StoreMarker.guardFileName, Name.newMarker]) {
      contents = .nothing
    } else {
      throw .incompatible("\(path) is not empty and not a store")
    }
    guard createIfMissing || contents == .store else { throw .io("no store at \(path)") }
    return contents
  }

  /// Whether the directory has a marker and LevelDB's files, and is no backup.
  ///
  /// It is not listed: a store may have thousands of segments.
  private static func isStore(
    _ path: String, _ files: any StoreFiles
  ) throws(StoreError) -> Bool {
    for (name, isOfStore) in [
      (BackupManifest.fileName, false), (Name.marker, true), (Name.current, true),
    ] where try (files.kind(of: "\(path)/\(name)") != nil) != isOfStore {
      return false
    }
    return true
  }

  private static func checkMarker(
    in path: String, _ files: any StoreFiles
  ) throws(StoreError) {
    let names = try hasDataKeys(path, files) ? [KeyFile.name] : []
    let version = StoreMarker.formatVersion(try formatVersion(in: path, files), of: names)
    try StoreMarker.checkKnown(version, of: path)
  }

  private static func hasDataKeys(
    _ path: String, _ files: any StoreFiles
  ) throws(StoreError) -> Bool {
    try files.kind(of: "\(path)/\(KeyFile.name)") != nil
  }

  /// The format version of a store.
  static func formatVersion(
    in path: String, _ files: any StoreFiles
  ) throws(StoreError) -> Int {
    let marker = "\(path)/\(Name.marker)"
    let bytes = try files.read(marker, limit: StoreMarker.byteLimit)
    guard let version = StoreMarker.formatVersion(in: bytes) else {
      throw .corrupt("\(marker) does not begin with the format version")
    }
    return version
  }

  /// The format version of a store that may be damaged; nil if its marker is damaged or missing.
  ///
  /// - Throws: ``StoreError/incompatible(_:)`` for a newer format.
  static func readableVersion(
    in path: String, _ files: any StoreFiles
  ) throws(StoreError) -> Int? {
    let bytes = try files.readIfPresent("\(path)/\(Name.marker)", limit: StoreMarker.byteLimit)
    let version = bytes.flatMap(StoreMarker.formatVersion(in:))
    if let version { try StoreMarker.checkKnown(version, of: path) }
    return version
  }

  /// The format version for the marker of a copy of the store at `path`.
  ///
  /// A damaged or missing marker counts as one of a store without segments.
  ///
  /// - Parameters:
  ///   - path: The store that was copied. Its marker is read now, after the copy: a marker is
  ///     replaced before the first segment is created.
  ///   - names: The names of the files in the copy.
  ///   - files: The file layer.
  /// - Returns: The format of the store, or of its segments.
  /// - Throws: ``StoreError/incompatible(_:)`` for a newer format.
  static func formatVersion(
    ofCopyOf path: String, with names: Set<String>, _ files: any StoreFiles
  ) throws(StoreError) -> Int {
    let version = try readableVersion(in: path, files) ?? StoreMarker.plainVersion
    return StoreMarker.formatVersion(version, of: names)
  }

  /// Makes the store one that may have segments, if it is not.
  static func requireSegments(in path: String, _ files: any StoreFiles) throws(StoreError) {
    try require(StoreMarker.segmentVersion, in: path, files)
  }

  /// Gives the store a format, unless it has that or a later one.
  static func require(
    _ version: Int, in path: String, _ files: any StoreFiles
  ) throws(StoreError) {
    guard try formatVersion(in: path, files) < version else { return }
    try writeMarker(in: path, of: version, files)
  }

  /// Replaces a marker that says that a store with segments, or with data keys, has none.
  ///
  /// A copy that an earlier version of this library made may have such a marker.
  static func correctMarker(in path: String, hasSegments: Bool, _ files: any StoreFiles) {
    do throws(StoreError) {
      if try hasDataKeys(path, files) {
        try require(StoreMarker.sealedVersion, in: path, files)
      } else if hasSegments {
        try requireSegments(in: path, files)
      }
    } catch {
      // The disk may be full, and an opening must not need room. The next one tries again.
    }
  }

  /// Makes the files in a directory a store, by writing its marker.
  static func writeMarker(
    in path: String, of version: Int = StoreMarker.plainVersion, _ files: any StoreFiles
  ) throws(StoreError) {
    let new = "\(path)/\(Name.newMarker)"
    try files.replace(new, with: Array(StoreMarker.contents(of: version).utf8))
    try files.move(new, to: "\(path)/\(Name.marker)")
    try files.synchronizeDirectory(path)
  }
}

extension StoreError {
  /// The error for a store whose directory was deleted, moved, or replaced by another one.
  static func io(replaced directory: String) -> StoreError {
    .io("the directory \(directory) is gone, or another one is in its place")
  }
}
