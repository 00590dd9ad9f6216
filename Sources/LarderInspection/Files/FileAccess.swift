import Foundation
import LarderEngine

/// What inspection asks of the file system.
///
/// In the inspected directory it lists, opens files for reading, and makes hard links to elsewhere.
enum FileAccess {
  /// The absolute path without links; nil when there is nothing.
  static func realPath(_ path: String) throws(InspectionError) -> String? {
    guard let real = realpath(path, nil) else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw failure("cannot resolve", path)
    }
    defer { free(real) }
    return String(cString: real)
  }

  /// Which device a file is on; nil when it cannot be told.
  static func device(of path: String) -> UInt64? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(truncatingIfNeeded: status.st_dev) : nil
  }

  static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// The size of a file in bytes; nil when there is none.
  static func bytes(of path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }

  /// The names in a directory, in order.
  static func names(in path: String) throws(InspectionError) -> [String] {
    do {
      return try SystemFiles().names(in: path).sorted()
    } catch {
      throw InspectionError(error)
    }
  }

  /// Makes `new` another name of the file `path`; false when links are refused here.
  ///
  /// A file that is gone by now is passed over.
  static func link(_ path: String, as new: String) -> Bool {
    Foundation.link(path, new) == 0 || errno == ENOENT
  }

  /// Copies a file as far as it goes now; false when it is gone.
  ///
  /// A file that only grows is copied up to a length that it had at one moment.
  static func copy(_ path: String, to new: String) throws(InspectionError) -> Bool {
    let source = open(path, O_RDONLY | O_CLOEXEC)
    guard source >= 0 else {
      if errno == ENOENT { return false }
      throw failure("cannot open", path)
    }
    defer { _ = close(source) }
    let target = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600 as mode_t)
    guard target >= 0 else { throw failure("cannot create", new) }
    defer { _ = close(target) }
    var buffer = [UInt8](repeating: 0, count: 256 << 10)
    while true {
      let count = Foundation.read(source, &buffer, buffer.count)
      if count == 0 { return true }
      guard count > 0 else { throw failure("cannot read", path) }
      try write(buffer[..<count], to: target, path: new)
    }
  }

  /// All bytes of a file, or its first ones; nil when there is none.
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

  /// Makes a file with these bytes.
  static func create(_ path: String, with bytes: [UInt8]) throws(InspectionError) {
    let target = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600 as mode_t)
    guard target >= 0 else { throw failure("cannot create", path) }
    defer { _ = close(target) }
    try write(bytes[...], to: target, path: path)
  }

  static func move(_ path: String, to new: String) throws(InspectionError) {
    guard rename(path, new) == 0 else { throw failure("cannot rename", path) }
  }

  /// Makes a file of a snapshot end after `count` bytes.
  static func truncate(_ path: String, to count: Int) throws(InspectionError) {
    guard Foundation.truncate(path, off_t(count)) == 0 else { throw failure("cannot cut", path) }
  }

  /// Whether a process with this id runs now.
  static func isRunning(_ process: Int32) -> Bool { kill(process, 0) == 0 || errno == EPERM }

  private static func write(
    _ bytes: ArraySlice<UInt8>, to target: Int32, path: String
  ) throws(InspectionError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(target, $0.baseAddress, $0.count) }
      guard count > 0 else { throw failure("cannot write", path) }
      rest = rest.dropFirst(count)
    }
  }

  private static func failure(_ what: String, _ path: String) -> InspectionError {
    InspectionError(.io, "\(what) \(path): \(String(cString: strerror(errno)))")
  }
}
