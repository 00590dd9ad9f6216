// How a directory comes to be as a whole: a backup, or a store that is restored.
//
// It is made beside its place under another name, ".NAME.larder-partial", synced, and moved there.
// A guard file in it keeps a second one for the same place out, and tells what a process that was
// killed has left, which the next one removes, from a directory of somebody else. It stays, empty:
// removing it before the move would let another one in, and behind the move change what is done.

/// A directory that is being made; unless it is finished, it is gone with this value.
struct PartialDirectory: ~Copyable {
  private(set) var path: String
  private let target: String
  private let files: any StoreFiles
  let lock: any FileGuard
  private var isFinished = false

  /// Begins a directory that is to be at `target`, which must be missing or empty.
  ///
  /// - Parameters:
  ///   - target: Its parent must be there.
  ///   - source: A directory that `target` must not lie in, its path without links.
  ///   - files: Where it is.
  /// - Throws: ``EngineError/invalidArgument(_:)`` when something is at `target` or it lies in
  ///   `source`; ``EngineError/locked(pid:)`` when one is being made there already;
  ///   ``EngineError/io(_:)``, ``EngineError/diskFull``. Nothing was changed.
  init(
    for target: String, outside source: String, files: any StoreFiles
  ) throws(EngineError) {
    guard !target.utf8.contains(0) else { throw .invalidArgument("the path contains a NUL") }
    let (parent, name) = try Self.place(of: target, files)
    let real = parent == "/" ? "/\(name)" : "\(parent)/\(name)"
    guard !(real + "/").hasPrefix(source + "/") else {
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
    do throws(EngineError) {
      lock = try files.takeGuard(at: "\(path)/\(StoreMarker.guardFileName)")
    } catch {
      // If it is empty it is of no use to anybody; without the lock nothing else is touched.
      Self.ignoringFailure { () throws(EngineError) in try files.removeDirectory(path) }
      throw error
    }
    // Somebody may have finished one in between, and then the guard is that one's.
    guard try lock.isInPlace() else { throw .locked(pid: nil) }
    try Self.empty(path, files)
    (self.path, self.target, self.files, self.lock) = (path, real, files, lock)
  }

  deinit {
    if !isFinished {
      Self.ignoringFailure { () throws(EngineError) in
        try Self.empty(path, files)
        try files.removeTree(path)
      }
    }
    lock.release()
  }

  /// Gives the directory, whose files are on the device, its place and name.
  mutating func finish() throws(EngineError) {
    try files.synchronizeDirectory(path)
    try Self.requireFree(target, files)
    try files.move(path, to: target)
    path = target
    try files.synchronizeDirectory(target + "/..")
    isFinished = true
  }

  /// Where the directory is to be: its parent without links, and its name there.
  private static func place(
    of target: String, _ files: any StoreFiles
  ) throws(EngineError) -> (parent: String, name: String) {
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
  ) throws(EngineError) {
    switch try files.kind(of: path) {
    case nil: return
    case .directory where try files.names(in: path).isEmpty: return
    default: throw .invalidArgument("\(path) is there already, and not an empty directory")
    }
  }

  /// Tidies up behind a failure, which is the one to tell.
  ///
  /// The next one for the same place removes what is left.
  private static func ignoringFailure(_ body: () throws(EngineError) -> Void) {
    do throws(EngineError) {
      try body()
    } catch {
      return
    }
  }

  /// Removes all but the guard, so that what a crash leaves of it is still known for what it is.
  private static func empty(_ path: String, _ files: any StoreFiles) throws(EngineError) {
    for name in try files.names(in: path) where name != StoreMarker.guardFileName {
      try files.remove("\(path)/\(name)")
    }
  }
}
