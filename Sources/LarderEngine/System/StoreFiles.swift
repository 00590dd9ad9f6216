/// The file layer: all that a store asks of the file system.
///
/// What the store does itself goes through these calls, and what LevelDB does through
/// ``environment``. ``SystemFiles`` is the system's; tests give a store files that live in memory,
/// fail on demand, and can be looked at as they would be after a power loss.
///
/// Every path is absolute, and every failure is ``EngineError/io(_:)`` or
/// ``EngineError/diskFull``, except where it is said.
package protocol StoreFiles: Sendable {
  /// The `leveldb::Env` that LevelDB works with; nil is its own.
  ///
  /// It lives as long as this value.
  var environment: OpaquePointer? { get }

  /// What is at `path`, links followed; nil when nothing is.
  func kind(of path: String) throws(EngineError) -> FileKind?

  /// The absolute path without links.
  func realPath(_ path: String) throws(EngineError) -> String

  /// The names in a directory, in no order, without "." and "..".
  func names(in path: String) throws(EngineError) -> Set<String>

  /// Throws unless the process may create files in the directory.
  func requireWritable(_ path: String) throws(EngineError)

  /// Makes a directory for the owner alone; one that is there already is left as it is.
  func makeDirectory(_ path: String) throws(EngineError)

  /// How many bytes a file has; nil when there is none.
  func byteCount(of path: String) throws(EngineError) -> Int?

  /// The first bytes of a file, at most `limit`; all of it without one.
  func read(_ path: String, limit: Int?) throws(EngineError) -> [UInt8]

  /// Some bytes of a file; less where it ends before.
  func read(_ path: String, from offset: Int, count: Int) throws(EngineError) -> [UInt8]

  /// Makes `bytes` all that a file holds, and waits until they are on the device.
  ///
  /// A missing file is made, for the owner alone; its name is not waited for.
  func replace(_ path: String, with bytes: [UInt8]) throws(EngineError)

  /// Makes a file with these bytes, for the owner alone, where there is none; waits for nothing.
  func create(_ path: String, with bytes: [UInt8]) throws(EngineError)

  /// Makes `other` another name of the file at `path`.
  ///
  /// Nothing is at `other` before.
  func link(_ path: String, as other: String) throws(EngineError) -> LinkOutcome

  /// Makes a file that has room on the device for `count` bytes, whatever they are.
  ///
  /// One that is there already keeps its room, and is made larger if need be.
  func allocate(_ path: String, count: Int) throws(EngineError)

  /// Makes a file end after `count` bytes, and waits until that is on the device.
  func truncate(_ path: String, to count: Int) throws(EngineError)

  /// Gives a file or directory another name, in place of what has that name.
  func move(_ path: String, to other: String) throws(EngineError)

  /// Gives two files or directories each other's names, in one step.
  ///
  /// - Throws: ``EngineError/io(_:)`` where the file system cannot do that.
  func exchange(_ path: String, with other: String) throws(EngineError)

  /// Removes a file.
  func remove(_ path: String) throws(EngineError)

  /// Removes an empty directory.
  func removeDirectory(_ path: String) throws(EngineError)

  /// Waits until what is in the file is on the device.
  func synchronize(_ path: String) throws(EngineError)

  /// Waits until the names in the directory are on the device.
  func synchronizeDirectory(_ path: String) throws(EngineError)

  /// How many bytes a file in this directory may still take from the file system.
  func availableBytes(in path: String) throws(EngineError) -> UInt64

  /// Takes the exclusive lock of the file at `path`, which is made if missing, and writes the
  /// process's id into it.
  ///
  /// - Throws: ``EngineError/locked(pid:)`` when it is taken, in this process or another one.
  func takeGuard(at path: String) throws(EngineError) -> any FileGuard
}

extension StoreFiles {
  package func read(
    _ path: String, from offset: Int, count: Int
  ) throws(EngineError) -> [UInt8] {
    Array(try read(path, limit: offset + count).dropFirst(offset))
  }

  package func byteCount(of path: String) throws(EngineError) -> Int? {
    try kind(of: path) == .other ? read(path, limit: nil).count : nil
  }

  /// All bytes of a file; nil when there is none.
  func readIfPresent(_ path: String) throws(EngineError) -> [UInt8]? {
    do throws(EngineError) {
      return try read(path, limit: nil)
    } catch {
      guard try kind(of: path) == nil else { throw error }
      return nil
    }
  }

  /// Whether the disk accepts a small file in a store's directory.
  ///
  /// Opening a database begins with writing one.
  func acceptsWrites(in directory: String) -> Bool {
    let probe = "\(directory)/LARDER.probe"
    do throws(EngineError) {
      try replace(probe, with: Array(repeating: 0, count: 4096))
      try synchronizeDirectory(directory)
      try remove(probe)
      return true
    } catch {
      return false
    }
  }

  /// Removes a directory and all that is in it.
  func removeTree(_ path: String) throws(EngineError) {
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
  /// There are no links here: between two file systems, for one.
  case refused
}

/// A lock on a file, held until it is given up or the last reference to it goes.
package protocol FileGuard: AnyObject, Sendable {
  /// Whether the file's path still leads to it.
  ///
  /// It does not once the directory has been deleted, moved, or replaced by another one.
  func isInPlace() throws(EngineError) -> Bool

  /// Empties the file and gives up the lock.
  ///
  /// Doing it again does nothing.
  func release()
}
