import Foundation

/// The regular files in a directory and in the directories in it.
///
/// Names are bytes, which need not be UTF-8. Symbolic links are not followed.
struct FileTree {
  /// The paths of the files relative to the directory, in order.
  private(set) var files: [[UInt8]] = []
  /// The directories that cannot be listed, and why.
  private(set) var unlisted: [(path: [UInt8], reason: String)] = []

  private let root: [UInt8]
  private var directories: [[UInt8]] = [[]]

  /// Lists the files.
  ///
  /// - Throws: An ``InspectionError`` with the status `io` if `directory` itself cannot be listed.
  /// - Complexity: One look at each file. All names are in memory.
  init(of directory: String) throws(InspectionError) {
    root = Array(directory.utf8)
    while let next = directories.popLast() {
      guard let reason = list(next) else { continue }
      guard !next.isEmpty else {
        throw InspectionError(.io, "cannot list \(directory): \(reason)")
      }
      unlisted.append((next, reason))
    }
    files.sort { $0.lexicographicallyPrecedes($1) }
  }

  /// Adds what is in a directory; returns why it cannot be listed.
  private mutating func list(_ path: [UInt8]) -> String? {
    guard let stream = absolute(path).withUnsafeBufferPointer({ $0.baseAddress.flatMap(opendir) })
    else { return String(cString: strerror(errno)) }
    defer { closedir(stream) }
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name != Array(".".utf8), name != Array("..".utf8) {
        add(path.isEmpty ? name : path + [UInt8(ascii: "/")] + name)
      }
    }
    return errno == 0 ? nil : String(cString: strerror(errno))
  }

  private mutating func add(_ path: [UInt8]) {
    var status = stat()
    let isKnown = absolute(path).withUnsafeBufferPointer { path in
      path.baseAddress.map { lstat($0, &status) == 0 } ?? false
    }
    // The reading of a file that cannot be looked at says why.
    guard isKnown else { return files.append(path) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: files.append(path)
    case S_IFDIR: directories.append(path)
    default: break
    }
  }

  private func absolute(_ path: [UInt8]) -> [CChar] {
    (root + [UInt8(ascii: "/")] + path + [0]).map { CChar(bitPattern: $0) }
  }
}

extension String {
  /// A name of bytes, in which those that are not UTF-8 are written as `\xff`.
  init(escapingName name: [UInt8]) {
    self = ""
    var rest = name[...]
    while let byte = rest.first {
      var (decoder, bytes) = (UTF8(), rest.makeIterator())
      if case .scalarValue(let scalar) = decoder.decode(&bytes) {
        unicodeScalars.append(scalar)
        rest = rest.dropFirst(UTF8.width(scalar))
      } else {
        // Such a byte is 0x80 or above.
        self += "\\x" + String(byte, radix: 16)
        rest = rest.dropFirst()
      }
    }
  }
}
