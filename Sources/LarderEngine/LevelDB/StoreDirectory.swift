// What makes a directory a store, beside LevelDB's own files:
//
//   LARDER        the marker. Its first line is "larder" and the format version of the directory.
//                 Written once, before LevelDB makes its first file, and never changed.
//   LARDER.lock   the guard. Whoever has the store open holds an flock on it and has written its
//                 process id into it; a clean close empties it. It is never deleted: a lock on a
//                 deleted file would keep nobody out.
//   LARDER.aside  what was cut off logs after the last power loss. See `Recovery.swift`.
//   LARDER.reserve  room that is kept while the disk is nearly full. See `Reserve.swift`.
//   LARDER.damaged  says that damage was met. See `Damage.swift`.
//   LARDER.probe  made and removed, to see whether the disk can be written to again.
//
// LevelDB writes to a directory even when it then refuses to open it, and it knows a store in its
// own process only by the spelling of its path. So everything that can be refused is refused here,
// before LevelDB sees the directory: a missing path, someone else's files, a newer format, a
// directory that cannot be written, a store that is open. What is refused has not been changed.
//
// An flock belongs to the open file and not to the process, so the guard also keeps out a second
// handle in this process, by whatever link or spelling it comes. LevelDB's own LOCK must not be
// opened by us: closing it again would give up the process's lock on it.

/// The directory of a store, checked and guarded for as long as this value lives.
struct StoreDirectory: ~Copyable {
  private enum Name {
    static let marker = StoreMarker.fileName
    static let newMarker = "LARDER.new"
    static let current = "CURRENT"
  }

  private enum Contents {
    /// Nothing, or what is left of a creation that ended before the marker was there.
    case nothing
    /// The marker, but no LevelDB: a creation that ended early.
    case unfinished
    case store
  }

  /// The absolute path without links.
  let path: String
  let lock: any FileGuard
  private let ownsLock: Bool

  /// Checks and guards the directory at `path`, and makes it one of a store if it may.
  ///
  /// - Parameters:
  ///   - path: A directory, or where one is to be made. Its parent must be there.
  ///   - createIfMissing: Whether a missing or empty directory becomes a store.
  ///   - files: Where it is.
  ///   - heldLock: Its guard, if the caller holds it already and keeps it; nil to take it.
  /// - Throws: As ``LevelDBEngine/init(at:options:)``. What was there is then unchanged.
  init(
    at path: String, createIfMissing: Bool, files: any StoreFiles,
    lock heldLock: (any FileGuard)? = nil
  ) throws(EngineError) {
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

    // Again, because somebody may have been here in between. From now on nobody is.
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

  /// The path without links of a store that is only to be read.
  ///
  /// - Throws: As ``LevelDBEngine/readOnly(at:options:)``. Nothing is changed.
  static func pathOfStore(at path: String) throws(EngineError) -> String {
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
  ) throws(EngineError) -> Contents {
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

  private static func checkMarker(
    in path: String, _ files: any StoreFiles
  ) throws(EngineError) {
    let marker = "\(path)/\(Name.marker)"
    let bytes = try files.read(marker, limit: StoreMarker.byteLimit)
    guard let version = StoreMarker.formatVersion(in: bytes) else {
      throw .corrupt("\(marker) does not begin with the format version")
    }
    let known = StoreMarker.formatVersion
    guard version <= known else {
      throw .incompatible(
        "\(path) has format version \(version); this library knows \(known) and below")
    }
  }

  /// Makes what is in a directory a store of a format version.
  static func writeMarker(
    in path: String, of version: Int = StoreMarker.formatVersion, _ files: any StoreFiles
  ) throws(EngineError) {
    let new = "\(path)/\(Name.newMarker)"
    try files.replace(new, with: Array(StoreMarker.contents(of: version).utf8))
    try files.move(new, to: "\(path)/\(Name.marker)")
    try files.synchronizeDirectory(path)
  }
}
