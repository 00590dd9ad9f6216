#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A store's files at one moment, in a private directory or in memory.
///
/// LevelDB writes to a database that it opens, even for reading. So a store that is opened
/// read-only is opened from a snapshot. The store may be open in another process, on read-only
/// media, or on a full disk.
package final class StoreSnapshot: Sendable {
  /// The store's directory.
  package let source: String
  /// The directory of the captured files.
  package let path: String
  package let capture: StoreCapture
  /// The size of the logs before ``cutLogs()``.
  package let logBytes: Int
  /// The number of the segments, and their size.
  package let segments: (count: Int, byteCount: Int)
  private let files: any StoreFiles
  // Nil if the files are in memory.
  private let directory: PrivateDirectory?

  /// The size of the largest store that is read into memory, in bytes.
  private static let memoryLimit = 1 << 30

  /// Captures the store in `source` in a private directory.
  ///
  /// - Parameters:
  ///   - source: A store's directory, its path absolute and without links.
  ///   - linking: Whether hard links are tried before the files are copied.
  ///   - prefix: The beginning of the private directory's name.
  /// - Throws: ``StoreError/corrupt(_:)`` when a file of the store is missing or its MANIFEST is
  ///   damaged; ``StoreError/io(_:)``, also when no private directory can be made;
  ///   ``StoreError/diskFull``.
  package convenience init(
    of source: String, linking: Bool = true, named prefix: String
  ) throws(StoreError) {
    let (directory, canLink) = try Self.makeDirectory(for: source, linking: linking, prefix)
    try self.init(
      of: source, into: directory.path, linking: canLink, files: SystemFiles(),
      directory: directory)
  }

  /// Captures the store in `source` in memory.
  ///
  /// - Throws: As ``init(of:linking:named:)``; ``StoreError/diskFull`` for a store over 1 GiB.
  package convenience init(inMemoryOf source: String) throws(StoreError) {
    let files = MemoryFiles()
    var byteCount = 0
    for name in try files.names(in: source) where DataFile(name) != nil {
      byteCount += try files.byteCount(of: "\(source)/\(name)") ?? 0
    }
    guard byteCount <= Self.memoryLimit else { throw .diskFull }
    try self.init(
      of: source, into: MemoryFiles.directory, linking: false, files: files, directory: nil)
  }

  /// Captures the readable part of the damaged store in `source`; see ``StoreCapture``.
  ///
  /// - Parameters:
  ///   - source: As above. No process may write to it meanwhile.
  ///   - rebuilding: What a rebuild does if the tables of the store are not known; nil for none.
  /// - Throws: ``StoreError/corrupt(_:)`` when the tables of the store are not known and
  ///   `rebuilding` is nil; ``StoreError/io(_:)``, ``StoreError/diskFull``.
  package convenience init(
    salvaging source: String, rebuilding: Rebuilding? = nil
  ) throws(StoreError) {
    let (directory, canLink) = try Self.makeDirectory(for: source, linking: true, "larder-")
    let files = SystemFiles()
    let capture = try StoreCapture(
      salvaging: source, into: directory.path, linking: canLink, rebuilding: rebuilding,
      files: files)
    try self.init(capture, of: source, at: directory.path, files: files, directory: directory)
  }

  private convenience init(
    of source: String, into path: String, linking: Bool, files: any StoreFiles,
    directory: PrivateDirectory?
  ) throws(StoreError) {
    let capture = try StoreCapture(of: source, into: path, linking: linking, files: files)
    try self.init(capture, of: source, at: path, files: files, directory: directory)
  }

  private init(
    _ capture: StoreCapture, of source: String, at path: String, files: any StoreFiles,
    directory: PrivateDirectory?
  ) throws(StoreError) {
    (self.source, self.path, self.files, self.directory) = (source, path, files, directory)
    self.capture = capture
    var logBytes = 0
    var segments = (count: 0, byteCount: 0)
    for name in try files.names(in: path) {
      switch DataFile(name) {
      case .log: logBytes += try files.byteCount(of: "\(path)/\(name)") ?? 0
      case .segment:
        segments.count += 1
        segments.byteCount += try files.byteCount(of: "\(path)/\(name)") ?? 0
      default: break
      }
    }
    (self.logBytes, self.segments) = (logBytes, segments)
  }

  /// Cuts the captured logs before their first unreadable record.
  ///
  /// - Returns: The logs before the cut.
  package func cutLogs() throws(StoreError) -> LogSurvey { try capture.cutLogs() }

  /// Writes the captured logs of another program's database anew, so that they can be opened.
  ///
  /// - Returns: The parts that are left out.
  package func rewriteForeignLogs() throws(StoreError) -> [LogLoss] {
    try capture.rewriteForeignLogs()
  }

  /// Opens the captured store; writes to it throw with `cause`.
  ///
  /// The engine uses `options`, but with the files of the snapshot, and keeps the snapshot alive.
  package func open(
    options: LevelDBOptions = LevelDBOptions(), cause: String
  ) throws(StoreError) -> LevelDBEngine {
    var options = options
    options.files = files
    options.createIfMissing = false
    options.readOnlyCause = cause
    // Not the store's: if all segments are lost, the rows that name them are to be read, and found
    // damaged, instead of being taken for the torn end of the logs. Segments that are there are
    // found by their names, and a backup of the snapshot has the format of the store.
    try files.create(
      "\(path)/\(StoreMarker.fileName)", with: Array(StoreMarker.contents.utf8))
    return try LevelDBEngine(at: path, options: options, of: self)
  }
}

// MARK: - Opening for reading

extension LevelDBEngine {
  /// Opens the store in the directory at `path` as it is now, for reading only.
  ///
  /// It reads a snapshot, without later writes of other processes. Nothing in the directory is
  /// changed, and no lock of the store is taken. If the disk has no room, the snapshot is in
  /// memory.
  ///
  /// - Throws: ``StoreError/io(_:)`` when there is no store; ``StoreError/incompatible(_:)`` when
  ///   the directory is not a store, or a newer one; ``StoreError/corrupt(_:)`` when the store's
  ///   bookkeeping or its logs are damaged; ``StoreError/diskFull`` when there is no room, and the
  ///   store is over 1 GiB.
  package static func readOnly(
    at path: String, options: LevelDBOptions = LevelDBOptions()
  ) throws(StoreError) -> LevelDBEngine {
    try options.checkRanges()
    let source = try StoreDirectory.pathOfStore(at: path)
    do throws(StoreError) {
      return try open(StoreSnapshot(of: source, named: "larder-"), options)
    } catch {
      // The disk has no room or no writable directory for the snapshot: use memory.
      guard StoreSnapshot.isForLackOfAPlace(error) else { throw error }
      return try open(StoreSnapshot(inMemoryOf: source), options)
    }
  }

  private static func open(
    _ snapshot: StoreSnapshot, _ options: LevelDBOptions
  ) throws(StoreError) -> LevelDBEngine {
    switch try snapshot.cutLogs().finding {
    case .whole, .torn: break
    case .damaged(_, _, let message): throw .corrupt(message)
    }
    return try snapshot.open(options: options, cause: "it was opened for reading only")
  }
}

// MARK: - The snapshot's directory

extension StoreSnapshot {
  private static let noPlace = "there is no place for a snapshot of "

  fileprivate static func isForLackOfAPlace(_ error: StoreError) -> Bool {
    switch error {
    case .diskFull: true
    case .io(let message): message.hasPrefix(noPlace)
    default: false
    }
  }

  /// Makes a private directory: if possible one in which links to the store's files can be made.
  private static func makeDirectory(
    for source: String, linking: Bool, _ prefix: String
  ) throws(StoreError) -> (PrivateDirectory, canLink: Bool) {
    let temporary = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let parent = source.lastIndex(of: "/").map { String(source[..<$0]) } ?? "/"
    let places = [(temporary, prefix), ("/tmp", prefix), (parent, "." + prefix)]
    var any: PrivateDirectory?
    for (place, prefix) in places where !isInside(place, source) {
      let isSameDevice = device(of: place) == device(of: source)
      guard linking && isSameDevice || any == nil,
        let directory = PrivateDirectory(in: place, named: prefix)
      else { continue }
      if linking, isSameDevice, try canLink(from: source, into: directory) {
        return (directory, true)
      }
      any = any ?? directory
    }
    guard let any else { throw .io(noPlace + source) }
    return (any, false)
  }

  private static func device(of path: String) -> UInt64? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(truncatingIfNeeded: status.st_dev) : nil
  }

  private static func isInside(_ place: String, _ source: String) -> Bool {
    let real = realpath(place, nil).map { path in
      defer { free(path) }
      return String(cString: path)
    }
    return ((real ?? place) + "/").hasPrefix(source + "/")
  }

  /// Tries to link one of the store's files.
  private static func canLink(
    from source: String, into directory: PrivateDirectory
  ) throws(StoreError) -> Bool {
    let names = try SystemFiles().names(in: source)
    let sample = names.sorted().first { $0.hasSuffix(".ldb") || $0.hasSuffix(".log") }
    guard let sample else { return true }
    let outcome = try SystemFiles().link("\(source)/\(sample)", as: "\(directory.path)/\(sample)")
    if outcome == .refused { return false }
    try directory.empty()
    return true
  }
}
