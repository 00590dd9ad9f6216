internal import CSimulatedDisk
import Synchronization

#if TRAIT_TESTS
  // In another package, which sees what is for this one only in this way.
  @testable package import Larder
#else
  package import Larder
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The file layer of a store on a simulated disk.
package struct SimulatedFiles: StoreFiles {
  package let disk: SimulatedDisk
  private let refusesLinks: Bool
  fileprivate let refusesAllocation: Bool

  package init(
    _ disk: SimulatedDisk, refusesLinks: Bool = false, refusesAllocation: Bool = false
  ) {
    (self.disk, self.refusesLinks) = (disk, refusesLinks)
    self.refusesAllocation = refusesAllocation
  }

  package var environment: OpaquePointer? { csimdisk_env(disk.disk) }

  package func kind(of path: String) throws(StoreError) -> FileKind? {
    var kind = csimdisk_kind.none
    try check("cannot look at", path, csimdisk_stat(disk.disk, path, &kind))
    return switch kind {
    case .none: nil
    case .file: .other
    case .directory: .directory
    }
  }

  package func realPath(_ path: String) throws(StoreError) -> String {
    let names = path.split(separator: "/").filter { $0 != "." }
    return "/" + names.joined(separator: "/")
  }

  package func names(in path: String) throws(StoreError) -> Set<String> {
    let (error, bytes) = CBuffer.filled { csimdisk_list(disk.disk, path, $0) }
    try check("cannot list", path, error)
    return Set(bytes.strings)
  }

  package func requireWritable(_ path: String) throws(StoreError) {
    let what = "cannot write to the directory"
    var kind = csimdisk_kind.none
    try check(what, path, csimdisk_stat(disk.disk, path, &kind))
    try check(what, path, kind == .directory ? 0 : ENOENT)
  }

  package func makeDirectory(_ path: String) throws(StoreError) {
    let error = csimdisk_make_directory(disk.disk, path)
    if error != EEXIST { try check("cannot make the directory", path, error) }
  }

  package func read(_ path: String, limit: Int?) throws(StoreError) -> [UInt8] {
    let (error, bytes) = CBuffer.filled { csimdisk_read(disk.disk, path, limit ?? .max, $0) }
    try check("cannot read", path, error)
    return bytes
  }

  package func openFile(
    _ path: String, forWriting: Bool
  ) throws(StoreError) -> (any StoreFile)? {
    try kind(of: path) == nil ? nil : SimulatedFile(path, of: self)
  }

  package func byteCount(of path: String) throws(StoreError) -> Int? {
    var count: UInt64 = 0
    // One call: LevelDB may delete the file at any time.
    let error = csimdisk_size(disk.disk, path, &count)
    if error == ENOENT || error == EISDIR { return nil }
    try check("cannot look at", path, error)
    return Int(count)
  }

  package func read(
    _ path: String, from offset: Int, count: Int
  ) throws(StoreError) -> [UInt8] {
    let (error, bytes) = CBuffer.filled {
      csimdisk_read_part(disk.disk, path, UInt64(offset), count, $0)
    }
    try check("cannot read", path, error)
    return bytes
  }

  /// Writes bytes at a place that is not behind the end of the file.
  fileprivate func write(
    _ bytes: [UInt8], to path: String, at offset: Int
  ) throws(StoreError) {
    var rest: [UInt8] = []
    let end = offset + bytes.count
    if let count = try byteCount(of: path), count > offset {
      if count > end { rest = try read(path, from: end, count: count - end) }
      try cut(path, to: offset)
    }
    try append(bytes + rest, to: path)
  }

  package func replace(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    try check("cannot write", path, csimdisk_write(disk.disk, path, bytes, bytes.count))
    try synchronize(path)
  }

  package func create(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    try check("cannot write", path, csimdisk_write(disk.disk, path, bytes, bytes.count))
  }

  package func link(_ path: String, as other: String) throws(StoreError) -> LinkOutcome {
    if refusesLinks { return .refused }
    let error = csimdisk_link(disk.disk, path, other)
    if error == ENOENT { return .missing }
    try check("cannot link", path, error)
    return .made
  }

  package func allocate(_ path: String, count: Int) throws(StoreError) {
    let held = disk.bytes(of: path)?.count ?? 0
    guard held < count else { return }
    try append([UInt8](repeating: 0, count: count - held), to: path)
  }

  package func truncate(_ path: String, to count: Int) throws(StoreError) {
    try cut(path, to: count)
    try synchronize(path)
  }

  fileprivate func cut(_ path: String, to count: Int) throws(StoreError) {
    try check("cannot write", path, csimdisk_truncate(disk.disk, path, UInt64(count)))
  }

  package func move(_ path: String, to other: String) throws(StoreError) {
    try check("cannot rename", path, csimdisk_rename(disk.disk, path, other))
  }

  package func exchange(_ path: String, with other: String) throws(StoreError) {
    try check("cannot exchange", path, csimdisk_exchange(disk.disk, path, other))
  }

  package func remove(_ path: String) throws(StoreError) {
    try check("cannot remove", path, csimdisk_remove(disk.disk, path))
  }

  package func removeDirectory(_ path: String) throws(StoreError) {
    try check("cannot remove", path, csimdisk_remove_directory(disk.disk, path))
  }

  package func synchronize(_ path: String) throws(StoreError) {
    try check("cannot sync", path, csimdisk_sync(disk.disk, path))
  }

  package func synchronizeDirectory(_ path: String) throws(StoreError) {
    try check("cannot sync", path, csimdisk_sync_directory(disk.disk, path))
  }

  package func availableBytes(in path: String) throws(StoreError) -> UInt64 {
    var bytes: UInt64 = 0
    try check("cannot look at", path, csimdisk_available(disk.disk, path, &bytes))
    return bytes
  }

  package func takeGuard(at path: String) throws(StoreError) -> any FileGuard {
    let taken = SimulatedGuard(disk: disk, path: path)
    try taken.lockAgain()
    return taken
  }

  /// Appends to a file without a sync; creates the file if it is missing.
  ///
  /// It is for tests of the disk itself. In a store, only LevelDB appends.
  package func append(_ bytes: [UInt8], to path: String) throws(StoreError) {
    try check("cannot write", path, csimdisk_append(disk.disk, path, bytes, bytes.count))
  }

  fileprivate func check(_ what: String, _ path: String, _ error: Int32) throws(StoreError) {
    if error == 0 { return }
    if error == ENOSPC || error == EDQUOT { throw .diskFull }
    throw .io("\(what) \(path): \(String(cString: strerror(error)))")
  }
}

/// A file that is found by its path at each call.
private final class SimulatedFile: StoreFile {
  private let path: String
  private let files: SimulatedFiles

  init(_ path: String, of files: SimulatedFiles) { (self.path, self.files) = (path, files) }

  func byteCount() throws(StoreError) -> Int { try files.byteCount(of: path) ?? 0 }

  func read(
    into first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    at offset: Int
  ) throws(StoreError) -> Int {
    let bytes = try files.read(path, from: offset, count: first.count + second.count)
    first.copyBytes(from: bytes.prefix(first.count))
    second.copyBytes(from: bytes.dropFirst(first.count))
    return bytes.count
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StoreError) {
    try files.write([UInt8](first) + [UInt8](second), to: path, at: offset)
  }

  /// Checks that there is room; the disk's files take none beyond their size.
  func allocate(upTo end: Int) throws(StoreError) {
    if files.refusesAllocation { throw .io("cannot make room for \(path)") }
    let held = try files.byteCount(of: path) ?? 0
    guard try files.availableBytes(in: path) >= UInt64(max(0, end - held)) else { throw .diskFull }
  }

  func truncate(to count: Int) throws(StoreError) { try files.cut(path, to: count) }

  func synchronize() throws(StoreError) { try files.synchronize(path) }
}

private final class SimulatedGuard: FileGuard {
  private let disk: SimulatedDisk
  private let path: String
  private let isHeld = Mutex(false)

  init(disk: SimulatedDisk, path: String) {
    self.disk = disk
    self.path = path
  }

  deinit {
    release()
  }

  func isInPlace() throws(StoreError) -> Bool {
    try SimulatedFiles(disk).kind(of: path) != nil
  }

  func lockAgain() throws(StoreError) {
    try isHeld.withLock { isHeld throws(StoreError) in
      let files = SimulatedFiles(disk)
      let error = csimdisk_lock(disk.disk, path)
      if error == EWOULDBLOCK {
        let text = String(decoding: try files.read(path, limit: 32), as: UTF8.self)
        throw .locked(pid: text.split(separator: "\n").first.flatMap { Int32($0) })
      }
      try files.check("cannot lock", path, error)
      // From here on, the lock is released at the latest when the guard is deallocated.
      isHeld = true
      let text = Array("\(getpid())\n".utf8)
      do throws(StoreError) {
        try files.check("cannot write", path, csimdisk_write(disk.disk, path, text, text.count))
      } catch .diskFull {
        // The lock holds anyway; other openers only do not learn the owner's process identifier.
      }
    }
  }

  func release() { unlock() }

  /// Releases the lock; it does not matter if the file cannot be truncated.
  func unlock() {
    isHeld.withLock { isHeld in
      guard isHeld else { return }
      isHeld = false
      _ = csimdisk_truncate(disk.disk, path, 0)
      csimdisk_unlock(disk.disk, path)
    }
  }
}
