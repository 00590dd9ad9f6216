import Foundation
import Larder

/// Read-only file system access for inspections.
enum FileAccess {
  private static let pieceBytes = 256 << 10

  /// The absolute path with links resolved; nil if nothing exists there.
  static func realPath(_ path: String) throws(InspectionError) -> String? {
    guard let real = realpath(path, nil) else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw failure("cannot resolve", path)
    }
    defer { free(real) }
    return String(cString: real)
  }

  /// The absolute path of a directory, with links resolved.
  ///
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is none.
  static func directory(
    _ path: String, of what: String = "store"
  ) throws(InspectionError) -> String {
    guard let real = try realPath(path), isDirectory(real) else {
      throw InspectionError(.unavailable, "there is no \(what) at \(path)")
    }
    return real
  }

  static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// The size of a file in bytes; nil if it does not exist.
  static func bytes(of path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }

  /// The bytes of a file, at most `limit`; nil if it does not exist.
  static func read(_ path: String, limit: Int = 64 << 20) throws(InspectionError) -> [UInt8]? {
    let file: (any StoreFile)?
    do {
      file = try SystemFiles().openFile(path, forWriting: false)
    } catch {
      throw InspectionError(error)
    }
    return try file.map { file throws(InspectionError) in try read(file, limit: limit) }
  }

  /// The bytes of an open file from `start` on, at most `limit`.
  static func read(
    _ file: any StoreFile, from start: Int = 0, limit: Int = .max
  ) throws(InspectionError) -> [UInt8] {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: min(limit, pieceBytes))
    do {
      while bytes.count < limit {
        let count = try piece.withUnsafeMutableBytes { piece throws(StoreError) in
          try file.read(
            into: piece, UnsafeMutableRawBufferPointer(start: nil, count: 0),
            at: start + bytes.count)
        }
        bytes += piece[..<min(count, limit - bytes.count)]
        if count < piece.count { break }
      }
    } catch {
      throw InspectionError(error)
    }
    return bytes
  }

  /// The date when a file was last changed; nil if it is a directory or a link, or is missing.
  static func changeDate(ofFile path: String) throws(InspectionError) -> Date? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw failure("cannot read the date of", path)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { return nil }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return Date(
      timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000)
  }

  /// The size of all files in a directory; those that are deleted meanwhile count nothing.
  static func byteCount(ofFilesIn directory: String) throws(InspectionError) -> Int {
    do {
      return try SystemFiles().names(in: directory).reduce(0) {
        $0 + (bytes(of: "\(directory)/\($1)") ?? 0)
      }
    } catch {
      throw InspectionError(.io, "cannot list \(directory): \(error)")
    }
  }

  /// Whether a process with this id is running.
  static func isRunning(_ process: Int32) -> Bool { kill(process, 0) == 0 || errno == EPERM }

  private static func failure(_ what: String, _ path: String) -> InspectionError {
    InspectionError(.io, "\(what) \(path): \(String(cString: strerror(errno)))")
  }
}
