// How a directory is created atomically: a backup, or a restored store.
//
// It is created beside its target under another name, ".NAME.larder-partial", synced, and renamed.
// A guard file in it keeps out a second process with the same target. It also marks the directory
// as ours: the next process removes a marked one that a killed process has left. The guard file
// stays, empty: removing it before the rename would let another process in, and removing it later
// would change a finished directory.

/// A directory that is being created; unless finished, it is deleted with this value.
struct PartialDirectory: ~Copyable {
  private(set) var path: String
  private let target: String
  private let files: any StoreFiles
  let lock: any FileGuard
  private var isFinished = false

  /// Begins a directory that becomes `target`, which must be missing or empty.
  ///
  /// - Parameters:
  ///   - target: The final path. Its parent must exist.
  ///   - source: A directory that must not contain `target`, its path without links; nil for none.
  ///   - files: The file layer.
  /// - Throws: ``StoreError/invalidArgument(_:)`` when something is at `target` or it lies in
  ///   `source`; ``StoreError/locked(pid:)`` when it is being created already;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``. Nothing was changed.
  init(
    for target: String, outside source: String?, files: any StoreFiles
  ) throws(StoreError) {
    guard !target.utf8.contains(0) else { throw .invalidArgument("the path contains a NUL") }
    let (parent, name) = try Self.place(of: target, files)
    let real = parent == "/" ? "/\(name)" : "\(parent)/\(name)"
    if let source, (real + "/").hasPrefix(source + "/") {
      throw .invalidArgument("\(target) lies in \(source)")
    }
    try Self.requireFree(real, files)
    let path = (parent == "/" ? "" : parent) + "/.\(name).larder-partial"
    try files.makeDirectory(path)
    let names = try files.names(in: path)
    guard names.isEmpty || names.contains(StoreMarker.guardFileName) else {
      throw .invalidArgument("\(path) is in the way")
    }
    let lock: any FileGuard
    do throws(StoreError) {
      lock = try files.takeGuard(at: "\(path)/\(StoreMarker.guardFileName)")
    } catch {
      // An empty directory is removed; without the lock nothing else is touched.
      Self.ignoringFailure { () throws(StoreError) in try files.removeDirectory(path) }
      throw error
    }
    // Another process may have finished in between, and then the guard belongs to its directory.
    guard try lock.isInPlace() else { throw .locked(pid: nil) }
    try Self.empty(path, files)
    (self.path, self.target, self.files, self.lock) = (path, real, files, lock)
  }

  deinit {
    if !isFinished {
      Self.ignoringFailure { () throws(StoreError) in
        try Self.empty(path, files)
        try files.removeTree(path)
      }
    }
    lock.release()
  }

  /// Syncs the directory, whose files are on the device, and renames it to its target.
  mutating func finish() throws(StoreError) {
    try files.synchronizeDirectory(path)
    try Self.requireFree(target, files)
    try files.move(path, to: target)
    path = target
    try files.synchronizeDirectory(target + "/..")
    isFinished = true
  }

  /// The target's parent, its path without links, and the target's name in it.
  private static func place(
    of target: String, _ files: any StoreFiles
  ) throws(StoreError) -> (parent: String, name: String) {
    var path = target
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    if try files.kind(of: path) == .directory { path = try files.realPath(path) }
    let slash = path.lastIndex(of: "/")
    let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
    guard !["", ".", ".."].contains(name) else {
      throw .invalidArgument("\(target) names no directory that can be made")
    }
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    return (try files.realPath(parent), name)
  }

  private static func requireFree(
    _ path: String, _ files: any StoreFiles
  ) throws(StoreError) {
    switch try files.kind(of: path) {
    case nil: return
    case .directory where try files.names(in: path).isEmpty: return
    default: throw .invalidArgument("\(path) is there already, and not an empty directory")
    }
  }

  /// Cleans up after a failure, which is the error to throw.
  ///
  /// The next directory for the same target removes the rest.
  private static func ignoringFailure(_ body: () throws(StoreError) -> Void) {
    do throws(StoreError) {
      try body()
    } catch {
      return
    }
  }

  /// Removes all files but the guard, which marks the directory as ours after a crash.
  private static func empty(_ path: String, _ files: any StoreFiles) throws(StoreError) {
    for name in try files.names(in: path) where name != StoreMarker.guardFileName {
      try files.remove("\(path)/\(name)")
    }
  }
}
