// What the engine asks of the file system, with the system's errors made typed.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file or directory that is open, and closed when its value ends.
///
/// No child process inherits it.
struct OpenFile: ~Copyable {
  enum Access {
    case directory
    case read
    /// For writing, created for the owner alone when missing.
    case write
    /// For writing, created for the owner alone when missing, and emptied.
    case replace

    fileprivate var flags: Int32 {
      switch self {
      case .directory: O_RDONLY | O_DIRECTORY
      case .read: O_RDONLY
      case .write: O_RDWR | O_CREAT | O_NOFOLLOW
      case .replace: O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW
      }
    }
  }

  private let path: String
  private let descriptor: Int32

  init(_ path: String, for access: Access) throws(EngineError) {
    self.path = path
    descriptor = open(path, access.flags | O_CLOEXEC, 0o600 as mode_t)
    guard descriptor >= 0 else { throw FileSystem.failure("cannot open", path) }
  }

  deinit {
    // Closing alone would leave the lock to a child process that is just being started, until it
    // runs its program. Without a lock this does nothing.
    _ = flock(descriptor, LOCK_UN)
    _ = close(descriptor)
  }

  /// Takes the exclusive lock of the file.
  ///
  /// False when another open file of it has it.
  func lock() throws(EngineError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw FileSystem.failure("cannot lock", path)
  }

  /// The first bytes of the file, at most `limit`.
  func readStart(_ limit: Int) throws(EngineError) -> [UInt8] {
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
      count = max(-1, pread(descriptor, buffer.baseAddress, limit, 0)) + 1
    }
    // One more than was read, so that a failure can be told from an empty file.
    guard !bytes.isEmpty else { throw FileSystem.failure("cannot read", path) }
    return bytes.dropLast()
  }

  /// Makes `text` all that the file holds.
  func replaceContents(_ text: String) throws(EngineError) {
    guard ftruncate(descriptor, 0) == 0 else { throw FileSystem.failure("cannot write", path) }
    let bytes = Array(text.utf8)
    guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
      throw FileSystem.failure("cannot write", path)
    }
  }

  /// Waits until the file, or the names in the directory, are on the device.
  func synchronize() throws(EngineError) {
    guard fsync(descriptor) == 0 else { throw FileSystem.failure("cannot sync", path) }
  }
}

/// Operations on paths.
package enum FileSystem {
  enum Kind {
    case directory
    case other
  }

  /// What is at `path`, links followed; nil when nothing is.
  static func kind(of path: String) throws(EngineError) -> Kind? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw failure("cannot look at", path)
    }
    return status.st_mode & S_IFMT == S_IFDIR ? .directory : .other
  }

  /// Makes a directory for the owner alone.
  ///
  /// One that is there already is left as it is.
  static func makeDirectory(_ path: String) throws(EngineError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw failure("cannot make the directory", path)
    }
  }

  /// The absolute path without links.
  static func realPath(_ path: String) throws(EngineError) -> String {
    guard let real = realpath(path, nil) else { throw failure("cannot resolve", path) }
    defer { free(real) }
    return String(cString: real)
  }

  /// The names in a directory, in no order, without "." and "..".
  package static func names(in path: String) throws(EngineError) -> Set<String> {
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

  /// Throws unless the process may create files in the directory.
  static func requireWritable(_ path: String) throws(EngineError) {
    guard faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 else {
      throw failure("cannot write to the directory", path)
    }
  }

  static func move(_ path: String, to other: String) throws(EngineError) {
    guard rename(path, other) == 0 else { throw failure("cannot rename", path) }
  }

  static var processID: Int32 { getpid() }

  /// The failure that `errno` tells of.
  fileprivate static func failure(_ what: String, _ path: String) -> EngineError {
    let number = errno
    if number == ENOSPC || number == EDQUOT { return .diskFull }
    return .io("\(what) \(path): \(String(cString: strerror(number)))")
  }
}
