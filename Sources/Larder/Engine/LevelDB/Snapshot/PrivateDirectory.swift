#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A directory for this process alone, which is removed with its last reference.
///
/// ``removeAll(thenExit:)`` removes it before the process is ended.
///
/// A process that is killed cannot remove its directories. The next process that creates a private
/// directory in the same parent removes them: each holds a guard file that its process keeps
/// locked, and the lock ends with the process.
package final class PrivateDirectory: Sendable {
  private static let guardName = "LARDER.private"
  private static let made = Lock<Set<String>>([])

  /// The absolute path without links, as the engine spells it in its messages.
  package let path: String
  private let guardFile: Int32

  /// Creates a directory in `parent`, and removes private directories of killed processes there.
  ///
  /// Returns nil if the system refuses to create it.
  package init?(in parent: String, named prefix: String) {
    Self.removeLeftovers(in: parent, named: prefix)
    // The lock is held during creation, so that a signal handler finds every directory noted.
    let made = Self.made.withLock { made -> (path: String, guardFile: Int32)? in
      guard let new = Self.make(in: parent, named: prefix) else { return nil }
      made.insert(new.path)
      return new
    }
    guard let made else { return nil }
    (path, guardFile) = made
  }

  deinit {
    Self.made.withLock { made in
      Self.remove(path)
      made.remove(path)
    }
    _ = close(guardFile)
  }

  /// Removes the contents of the directory.
  func empty() throws(StoreError) {
    for name in try SystemFiles().names(in: path) where name != Self.guardName {
      try SystemFiles().remove("\(path)/\(name)")
    }
  }

  /// Removes all private directories and ends the process, after a signal or on a closed pipe.
  ///
  /// From then on no directory can be created.
  package static func removeAll(thenExit code: Int32) -> Never {
    made.withLock { made in
      for path in made { remove(path) }
      _exit(code)
    }
  }

  private static func make(
    in parent: String, named prefix: String
  ) -> (path: String, guardFile: Int32)? {
    while true {
      var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
      guard let name = mkdtemp(&template), let real = realpath(name, nil) else { return nil }
      defer { free(real) }
      let path = String(cString: real)
      let guardFile = open(
        "\(path)/\(guardName)", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600 as mode_t)
      guard guardFile >= 0 else {
        _ = rmdir(path)
        return nil
      }
      // On a file system without locks no process gets a lock, so none removes the directory.
      while flock(guardFile, LOCK_EX) != 0, errno == EINTR {}
      // Another process may have found the guard before it was locked, and removed the directory.
      if OpenDirectory.isLinked(guardFile) { return (path, guardFile) }
      _ = close(guardFile)
    }
  }

  private static func remove(_ path: String) {
    // LevelDB may be creating a new file in it on another thread.
    for _ in 0..<10 {
      guard let directory = OpenDirectory(path) else { return }
      // The next process removes a directory that stays.
      if directory.removeContents(last: guardName), rmdir(path) == 0 { return }
    }
  }
}

// MARK: - Directories of processes that were killed

extension PrivateDirectory {
  private static func removeLeftovers(in parent: String, named prefix: String) {
    let names: Set<String>
    do throws(StoreError) {
      names = try SystemFiles().names(in: parent)
    } catch {
      // A directory that cannot be listed may still accept a new directory.
      return
    }
    for name in names where name.hasPrefix(prefix) { removeIfLeftOver("\(parent)/\(name)") }
  }

  /// Removes a private directory of this user whose process has ended.
  ///
  /// It leaves alone a link, another user's directory, a directory that others may enter, one
  /// without a guard, and one whose guard is locked.
  private static func removeIfLeftOver(_ path: String) {
    guard let directory = OpenDirectory(path), directory.isPrivate,
      let guardFile = directory.openFile(guardName)
    else { return }
    defer { _ = close(guardFile) }
    // The guard stays locked during removal, so that only one process removes the contents.
    guard flock(guardFile, LOCK_EX | LOCK_NB) == 0, OpenDirectory.isLinked(guardFile) else {
      return
    }
    // The path may lead to another file by now; rmdir removes only an empty directory.
    if directory.removeContents(last: guardName) { _ = rmdir(path) }
  }
}

/// An open directory, whose descriptor leads to it even if its path is replaced.
private struct OpenDirectory: ~Copyable {
  private let descriptor: Int32

  /// Opens a directory; nil for a link and for any other file.
  init?(_ path: String) { self.init(path, in: AT_FDCWD) }

  private init?(_ name: String, in parent: Int32) {
    descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    if descriptor < 0 { return nil }
  }

  deinit { _ = close(descriptor) }

  /// Whether it belongs to this user and no other user may enter it.
  var isPrivate: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_uid == geteuid()
      && status.st_mode & 0o777 == 0o700
  }

  /// Opens a regular file in it; nil for a link and for any other file.
  func openFile(_ name: String) -> Int32? {
    let file = openat(descriptor, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { return nil }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      _ = close(file)
      return nil
    }
    return file
  }

  /// Whether an open file still has a name.
  static func isLinked(_ file: Int32) -> Bool {
    var status = stat()
    return fstat(file, &status) == 0 && status.st_nlink > 0
  }

  /// Removes its contents, the file named `last` at the end; links are not followed.
  ///
  /// Returns whether the directory is now empty.
  func removeContents(last: String? = nil) -> Bool {
    var isEmpty = true
    for name in names() where name != last && unlinkat(descriptor, name, 0) != 0 {
      let isGone = OpenDirectory(name, in: descriptor)?.removeContents() ?? false
      isEmpty = isGone && unlinkat(descriptor, name, AT_REMOVEDIR) == 0 && isEmpty
    }
    guard let last, isEmpty else { return isEmpty }
    return unlinkat(descriptor, last, 0) == 0 || errno == ENOENT
  }

  private func names() -> [String] {
    // The stream closes its own descriptor.
    guard let stream = fdopendir(openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) else {
      return []
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
