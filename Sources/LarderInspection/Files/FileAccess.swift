import Foundation
import LarderEngine

/// Read-only file system access for inspections.
enum FileAccess {
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
    let source = open(path, O_RDONLY | O_CLOEXEC)
    guard source >= 0 else {
      if errno == ENOENT { return nil }
      throw failure("cannot open", path)
    }
    defer { _ = close(source) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count < limit {
      let count = Foundation.read(source, &buffer, min(buffer.count, limit - bytes.count))
      if count == 0 { break }
      guard count > 0 else { throw failure("cannot read", path) }
      bytes += buffer[..<count]
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
