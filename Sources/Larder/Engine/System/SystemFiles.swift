#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

import CLarder
import Synchronization

/// The system's files, with typed errors.
///
/// Files and directories are created readable by their owner only. Child processes do not inherit
/// open files.
package struct SystemFiles: StoreFiles {
  /// The largest file that is read as a whole, twice the largest log or table of a store: 2 GiB.
  package static let wholeFileLimit = 2 << 30

  package init() {}

  package var environment: OpaquePointer? { nil }

  package func kind(of path: String) throws(StoreError) -> FileKind? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw failure("cannot look at", path)
    }
    return status.st_mode & S_IFMT == S_IFDIR ? .directory : .other
  }

  package func realPath(_ path: String) throws(StoreError) -> String {
    guard let real = realpath(path, nil) else { throw failure("cannot resolve", path) }
    defer { free(real) }
    return String(cString: real)
  }

  package func names(in path: String) throws(StoreError) -> Set<String> {
    guard let stream = opendir(path) else { throw failure("cannot list", path) }
    defer { closedir(stream) }
    var names: Set<String> = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.insert(name) }
    }
    guard errno == 0 else { throw failure("cannot list", path) }
    return names
  }

  package func requireWritable(_ path: String) throws(StoreError) {
    guard faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 else {
      throw failure("cannot write to the directory", path)
    }
  }

  package func makeDirectory(_ path: String) throws(StoreError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw failure("cannot make the directory", path)
    }
  }

  package func byteCount(of path: String) throws(StoreError) -> Int? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw failure("cannot look at", path)
    }
    return Int(status.st_size)
  }

  package func read(_ path: String, limit: Int?) throws(StoreError) -> [UInt8] {
    let file = try OpenFile(path, O_RDONLY)
    guard let limit else {
      let count = try file.count()
      guard count <= Self.wholeFileLimit else {
        throw .io("cannot read \(path): its \(count) bytes are over \(Self.wholeFileLimit)")
      }
      return try file.read(upTo: count)
    }
    return try file.read(upTo: limit)
  }

  package func read(
    _ path: String, from offset: Int, count: Int
  ) throws(StoreError) -> [UInt8] {
    try OpenFile(path, O_RDONLY).read(upTo: count, from: offset)
  }

  package func replace(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    let file = try OpenFile(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW)
    try file.write(bytes)
    try file.synchronize()
  }

  package func create(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW).write(bytes)
  }

  package func openFile(
    _ path: String, forWriting: Bool
  ) throws(StoreError) -> (any StoreFile)? {
    do throws(StoreError) {
      return try SystemFile(path, forWriting ? O_RDWR | O_NOFOLLOW : O_RDONLY)
    } catch {
      guard try kind(of: path) == nil else { throw error }
      return nil
    }
  }

  package func link(_ path: String, as other: String) throws(StoreError) -> LinkOutcome {
    var status = stat()
    if stat(path, &status) == 0 { try requireFile(status, at: path) }
    if linkat(AT_FDCWD, path, AT_FDCWD, other, 0) == 0 { return .made }
    return errno == ENOENT ? .missing : .refused
  }

  package func allocate(_ path: String, count: Int) throws(StoreError) {
    let file = try OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW)
    let held = try file.count()
    if held < count { try file.allocate(count, from: held) }
  }

  package func truncate(_ path: String, to count: Int) throws(StoreError) {
    let file = try OpenFile(path, O_RDWR | O_NOFOLLOW)
    try file.truncate(to: count)
    try file.synchronize()
  }

  package func move(_ path: String, to other: String) throws(StoreError) {
    guard rename(path, other) == 0 else { throw failure("cannot rename", path) }
  }

  package func exchange(_ path: String, with other: String) throws(StoreError) {
    let failed = clarder_exchange(path, other)
    guard failed == 0 else {
      errno = failed
      throw failure("cannot exchange \(other) with", path)
    }
  }

  package func remove(_ path: String) throws(StoreError) {
    guard unlink(path) == 0 else { throw failure("cannot remove", path) }
  }

  package func removeDirectory(_ path: String) throws(StoreError) {
    guard rmdir(path) == 0 else { throw failure("cannot remove", path) }
  }

  package func synchronize(_ path: String) throws(StoreError) {
    try OpenFile(path, O_RDONLY).synchronize()
  }

  package func synchronizeDirectory(_ path: String) throws(StoreError) {
    try OpenFile(path, O_RDONLY | O_DIRECTORY).synchronize()
  }

  package func availableBytes(in path: String) throws(StoreError) -> UInt64 {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { throw failure("cannot look at", path) }
    return UInt64(status.f_bavail) * UInt64(status.f_frsize)
  }

  package func takeGuard(at path: String) throws(StoreError) -> any FileGuard {
    try SystemFileGuard(path)
  }
}

/// A file with an `flock` on it.
private final class SystemFileGuard: FileGuard {
  // Nil once it is released.
  private let file: Lock<OpenFile?>
  private let isLocked = Atomic<Bool>(true)
  private let path: String
  private let identity: FileIdentity
  private let forks = ForkCount.watch()

  init(_ path: String) throws(StoreError) {
    let file = try OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW)
    try file.takeOver()
    self.path = path
    identity = try file.identity()
    self.file = Lock(file)
  }

  func isInPlace() throws(StoreError) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return false }
      throw failure("cannot look at", path)
    }
    return FileIdentity(status) == identity
  }

  deinit { release() }

  func unlock() {
    // In a child process, file and lock belong to the parent, which shares the open file.
    guard ForkCount.current == forks else { return }
    file.withLock { file in
      // The text of a file that is not locked is another process's.
      guard isLocked.exchange(false, ordering: .relaxed) else { return }
      do {
        try file?.truncate(to: 0)
      } catch {
        // The lock ends nevertheless; the file then names an owner that has gone.
      }
      file?.unlock()
    }
  }

  func lockAgain() throws(StoreError) {
    try file.withLock { file throws(StoreError) in
      guard try file?.takeOver() != nil else { throw .closed }
      isLocked.store(true, ordering: .relaxed)
    }
  }

  func release() {
    guard ForkCount.current == forks else { return }
    unlock()
    file.withLock { $0 = nil }
  }
}

private final class SystemFile: StoreFile {
  private let file: OpenFile

  init(_ path: String, _ flags: Int32) throws(StoreError) { file = try OpenFile(path, flags) }

  func byteCount() throws(StoreError) -> Int { try file.count() }

  func read(
    into first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    at offset: Int
  ) throws(StoreError) -> Int {
    try file.read(into: first, second, at: offset)
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StoreError) {
    try file.write(first, second, at: offset)
  }

  func allocate(upTo end: Int) throws(StoreError) { try file.allocate(upTo: end) }

  func truncate(to count: Int) throws(StoreError) { try file.truncate(to: count) }

  func synchronize() throws(StoreError) { try file.synchronize() }
}

/// An open file or directory, which is closed when this value ends.
///
/// Opening never waits, and refuses a FIFO, a socket and a device: reading one may not end.
private struct OpenFile: ~Copyable {
  private let path: String
  private let descriptor: Int32
  private let forks = ForkCount.current

  init(_ path: String, _ flags: Int32) throws(StoreError) {
    self.path = path
    descriptor = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600 as mode_t)
    guard descriptor >= 0 else {
      // The error for a socket, and for writing to a FIFO without a reader.
      throw errno == ENXIO ? notFile(path) : failure("cannot open", path)
    }
    try requireFile(status(), at: path)
  }

  deinit {
    // Closing alone would leave the lock to a child process that is just being started, until it
    // runs its program. Without a lock this does nothing. In a forked child process, the lock is
    // the parent's.
    if ForkCount.current == forks { _ = flock(descriptor, LOCK_UN) }
    _ = close(descriptor)
  }

  /// Takes the exclusive lock of the file; false if another open file has it.
  func lock() throws(StoreError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw failure("cannot lock", path)
  }

  /// Takes the lock and writes the process id into the file.
  func takeOver() throws(StoreError) {
    guard try lock() else {
      let text = String(decoding: try read(upTo: 32), as: UTF8.self)
      throw .locked(pid: Int32(text.prefix { $0 != "\n" }))
    }
    try truncate(to: 0)
    do throws(StoreError) {
      try write(Array("\(getpid())\n".utf8))
    } catch {
      // The disk is full, or files may not grow. The lock keeps others out nevertheless; they just
      // cannot learn the owner's process id.
    }
  }

  /// Releases the lock of the file.
  func unlock() { _ = flock(descriptor, LOCK_UN) }

  func count() throws(StoreError) -> Int { Int(try status().st_size) }

  func identity() throws(StoreError) -> FileIdentity { FileIdentity(try status()) }

  private func status() throws(StoreError) -> stat {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure("cannot look at", path) }
    return status
  }

  /// The bytes of the file from `offset` on, at most `limit`.
  func read(upTo limit: Int, from offset: Int = 0) throws(StoreError) -> [UInt8] {
    // A limit may come from a damaged file.
    let limit = min(limit, try count() - offset)
    // An array without capacity writes into the empty array that all threads share.
    guard limit > 0 else { return [] }
    var isFailed = false
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
      while count < limit {
        let rest = UnsafeMutableBufferPointer(rebasing: buffer[count..<limit])
        let more = pread(descriptor, rest.baseAddress, rest.count, off_t(offset + count))
        isFailed = more < 0
        guard more > 0 else { break }
        count += more
      }
    }
    guard !isFailed else { throw failure("cannot read", path) }
    return bytes
  }

  func truncate(to count: Int) throws(StoreError) {
    guard ftruncate(descriptor, off_t(count)) == 0 else { throw failure("cannot cut", path) }
  }

  /// Enlarges the file from `held` to `count` bytes, all allocated.
  func allocate(_ count: Int, from held: Int) throws(StoreError) {
    #if canImport(Darwin)
      var room = fstore_t(
        fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0,
        fst_length: off_t(count - held), fst_bytesalloc: 0)
      guard fcntl(descriptor, F_PREALLOCATE, &room) != -1 else {
        throw failure("cannot make room for", path)
      }
      try truncate(to: count)
    #else
      // posix_fallocate returns its error and does not set errno.
      errno = posix_fallocate(descriptor, off_t(held), off_t(count - held))
      guard errno == 0 else { throw failure("cannot make room for", path) }
    #endif
  }

  /// Allocates room up to `end` and keeps the size of the file.
  func allocate(upTo end: Int) throws(StoreError) {
    let held = try count()
    guard held < end else { return }
    errno = clarder_allocate(descriptor, Int64(held), Int64(end - held))
    guard errno == 0 else { throw failure("cannot make room for", path) }
  }

  /// Writes `bytes` at the start of the file.
  func write(_ bytes: [UInt8]) throws(StoreError) {
    var done = 0
    while done < bytes.count {
      let more = bytes.withUnsafeBytes { buffer in
        let rest = UnsafeRawBufferPointer(rebasing: buffer[done...])
        return pwrite(descriptor, rest.baseAddress, rest.count, off_t(done))
      }
      guard more >= 0 else { throw failure("cannot write", path) }
      done += more
    }
  }

  /// Reads into `first` and then into `second`; fewer bytes only at the end of the file.
  func read(
    into first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    at offset: Int
  ) throws(StoreError) -> Int {
    var done = 0
    while done < first.count + second.count {
      let more = withPieces(first, second, from: done) { pieces, count in
        preadv(descriptor, pieces, count, off_t(offset + done))
      }
      guard more >= 0 else { throw failure("cannot read", path) }
      guard more > 0 else { break }
      done += more
    }
    return done
  }

  /// Writes `first` and then `second`.
  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StoreError) {
    var done = 0
    while done < first.count + second.count {
      let (first, second) = (
        UnsafeMutableRawBufferPointer(mutating: first),
        UnsafeMutableRawBufferPointer(mutating: second)
      )
      let more = withPieces(first, second, from: done) { pieces, count in
        pwritev(descriptor, pieces, count, off_t(offset + done))
      }
      guard more >= 0 else { throw failure("cannot write", path) }
      done += more
    }
  }

  private func withPieces(
    _ first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    from start: Int, _ body: (UnsafePointer<iovec>, Int32) -> Int
  ) -> Int {
    let rest = UnsafeMutableRawBufferPointer(rebasing: second[max(0, start - first.count)...])
    let head = UnsafeMutableRawBufferPointer(rebasing: first[min(start, first.count)...])
    let pieces: InlineArray<2, iovec> = [
      iovec(iov_base: head.baseAddress, iov_len: head.count),
      iovec(iov_base: rest.baseAddress, iov_len: rest.count),
    ]
    return pieces.span.withUnsafeBufferPointer { pieces in
      pieces.baseAddress.map { body($0, 2) } ?? 0
    }
  }

  /// Waits until the file, or the names in the directory, are on the device.
  func synchronize() throws(StoreError) {
    #if canImport(Darwin)
      guard fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0 else {
        throw failure("cannot sync", path)
      }
    #else
      guard fsync(descriptor) == 0 else { throw failure("cannot sync", path) }
    #endif
  }
}

/// The identity of a file, which is unique while the file exists or is open.
struct FileIdentity: Equatable {
  private let device: UInt64
  private let number: UInt64

  fileprivate init(_ status: stat) {
    (device, number) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(status.st_ino))
  }

  /// The identity of what has a name, links not followed; nil if there is nothing.
  init?(ofFileAt path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    self.init(status)
  }
}

/// Throws if the status is neither of a file nor of a directory.
private func requireFile(_ status: stat, at path: String) throws(StoreError) {
  guard [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else { throw notFile(path) }
}

private func notFile(_ path: String) -> StoreError {
  .io("cannot open \(path): it is a FIFO, a socket or a device, and not a file")
}

/// The failure that a number of the system stands for, by default `errno`.
func failure(_ what: String, _ path: String, errno number: Int32 = errno) -> StoreError {
  if number == ENOSPC || number == EDQUOT { return .diskFull }
  return .io("\(what) \(path): \(String(cString: strerror(number)))")
}
