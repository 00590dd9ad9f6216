/// The file layer: all operations of a store on the file system.
///
/// The store's own operations are these calls; LevelDB's go through ``environment``.
/// ``SystemFiles`` is the system's file layer. Tests use files in memory, which fail on demand and
/// show the state after a power loss.
///
/// Every path is absolute, and every failure is ``StoreError/io(_:)`` or ``StoreError/diskFull``
/// unless stated otherwise.
package protocol StoreFiles: Sendable {
  /// The `leveldb::Env` for LevelDB, which lives as long as this value; nil for LevelDB's own.
  var environment: OpaquePointer? { get }

  /// The kind of the file at `path`, links followed; nil if there is no file.
  func kind(of path: String) throws(StoreError) -> FileKind?

  /// The absolute path without links.
  func realPath(_ path: String) throws(StoreError) -> String

  /// The names in a directory, without "." and "..".
  func names(in path: String) throws(StoreError) -> Set<String>

  /// Throws unless the process may create files in the directory.
  func requireWritable(_ path: String) throws(StoreError)

  /// Creates a directory that only its owner can read; an existing one stays as it is.
  func makeDirectory(_ path: String) throws(StoreError)

  /// The size of a file; nil if there is no file.
  func byteCount(of path: String) throws(StoreError) -> Int?

  /// The first bytes of a file, up to `limit`; all bytes if it is nil.
  ///
  /// It allocates no more than the file has.
  func read(_ path: String, limit: Int?) throws(StoreError) -> [UInt8]

  /// Up to `count` bytes of a file from `offset` on; fewer if the file ends before.
  func read(_ path: String, from offset: Int, count: Int) throws(StoreError) -> [UInt8]

  /// Replaces the contents of a file, and waits until they are on the device.
  ///
  /// A missing file is created, readable by its owner only; its name is not synced.
  func replace(_ path: String, with bytes: [UInt8]) throws(StoreError)

  /// Creates a file, readable by its owner only, without syncing it; there must be none yet.
  func create(_ path: String, with bytes: [UInt8]) throws(StoreError)

  /// Creates a file with the bytes of another one, without syncing it.
  ///
  /// - Returns: What was copied; nil if there is no file at `path`, and then none was created.
  func copy(_ path: String, to other: String) throws(StoreError) -> FileDigest?

  /// Opens a file; nil if there is none.
  func openFile(_ path: String, forWriting: Bool) throws(StoreError) -> (any StoreFile)?

  /// Makes `other`, which must not exist, a hard link to the file at `path`.
  func link(_ path: String, as other: String) throws(StoreError) -> LinkOutcome

  /// Allocates a file of at least `count` bytes on the device, with any contents.
  ///
  /// An existing file is enlarged if needed.
  func allocate(_ path: String, count: Int) throws(StoreError)

  /// Truncates a file to `count` bytes, and waits until that is on the device.
  func truncate(_ path: String, to count: Int) throws(StoreError)

  /// Renames a file or directory, and replaces a file of the new name.
  func move(_ path: String, to other: String) throws(StoreError)

  /// Exchanges the names of two files or directories atomically.
  ///
  /// - Throws: ``StoreError/io(_:)``, also if the file system has no such operation.
  func exchange(_ path: String, with other: String) throws(StoreError)

  /// Removes a file.
  func remove(_ path: String) throws(StoreError)

  /// Removes an empty directory.
  func removeDirectory(_ path: String) throws(StoreError)

  /// Waits until the contents of the file are on the device.
  func synchronize(_ path: String) throws(StoreError)

  /// Waits until the names in the directory are on the device.
  func synchronizeDirectory(_ path: String) throws(StoreError)

  /// The free room in bytes for files in this directory.
  func availableBytes(in path: String) throws(StoreError) -> UInt64

  /// Takes the exclusive lock of the file at `path` and writes the process id into the file.
  ///
  /// A missing file is created.
  ///
  /// - Throws: ``StoreError/locked(pid:)`` if the lock is taken, in this process or another one.
  func takeGuard(at path: String) throws(StoreError) -> any FileGuard
}

extension StoreFiles {
  func openFile(_ path: String) throws(StoreError) -> (any StoreFile)? {
    try openFile(path, forWriting: false)
  }

  package func read(
    _ path: String, from offset: Int, count: Int
  ) throws(StoreError) -> [UInt8] {
    Array(try read(path, limit: offset + count).dropFirst(offset))
  }

  /// The first bytes of a file, up to `limit`, all if that is nil; nil if there is no file.
  func readIfPresent(_ path: String, limit: Int? = nil) throws(StoreError) -> [UInt8]? {
    do throws(StoreError) {
      return try read(path, limit: limit)
    } catch {
      guard try kind(of: path) == nil else { throw error }
      return nil
    }
  }

  /// Whether the disk accepts a file of `count` bytes in a store's directory.
  ///
  /// Opening a database begins with writing a small one.
  func acceptsWrites(in directory: String, count: Int) -> Bool {
    let probe = "\(directory)/LARDER.probe"
    do throws(StoreError) {
      try replace(probe, with: Array(repeating: 0, count: count))
      try synchronizeDirectory(directory)
      try remove(probe)
      return true
    } catch {
      return false
    }
  }

  /// Removes a directory and its contents.
  func removeTree(_ path: String) throws(StoreError) {
    for name in try names(in: path) {
      let place = "\(path)/\(name)"
      if try kind(of: place) == .directory { try removeTree(place) } else { try remove(place) }
    }
    try removeDirectory(path)
  }
}

package enum FileKind: Sendable {
  case directory
  case other
}

package enum LinkOutcome: Sendable {
  case made
  /// There is no such file.
  case missing
  /// The file system refuses the link, for example because it would lead to another file system.
  case refused
}

/// A lock on a file, held until it is released or its last reference ends.
package protocol FileGuard: AnyObject, Sendable {
  /// Whether the path still leads to the file.
  ///
  /// It does not once the directory was deleted, moved, or replaced by another one.
  func isInPlace() throws(StoreError) -> Bool

  /// Empties the file and releases the lock; the file stays open for ``lockAgain()``.
  func unlock()

  /// Takes the lock again after ``unlock()``, and writes the process id into the file.
  ///
  /// - Throws: ``StoreError/locked(pid:)`` if the lock is taken; ``StoreError/io(_:)``.
  func lockAgain() throws(StoreError)

  /// Unlocks and closes the file; further calls do nothing.
  func release()
}

/// An open file, which is read and written at any place.
///
/// It stays usable when its name is removed. It is closed with its last reference.
package protocol StoreFile: AnyObject, Sendable {
  /// The size of the file.
  func byteCount() throws(StoreError) -> Int

  /// Reads bytes into `first` and then into `second`, and returns their number.
  ///
  /// It is less than both can hold only if the file ends before.
  func read(
    into first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    at offset: Int
  ) throws(StoreError) -> Int

  /// Writes `first` and then `second`.
  ///
  /// If it fails, any part may have been written.
  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StoreError)

  /// Allocates room up to the place `end`, so that writes find it; the file's size stays.
  ///
  /// - Throws: ``StoreError/io(_:)``, also if the file system has no such operation;
  ///   ``StoreError/diskFull``.
  func allocate(upTo end: Int) throws(StoreError)

  /// Cuts the file to `count` bytes, or only gives back the room behind them, without a sync.
  func truncate(to count: Int) throws(StoreError)

  /// Waits until the contents of the file are on the device.
  func synchronize() throws(StoreError)
}
