// Files of any size are copied and checked in pieces, since a segment alone may have 32 MiB.

/// The size of a file, and the CRC32C of its bytes.
package struct FileDigest: Hashable, Sendable {
  package private(set) var byteCount = 0
  package private(set) var checksum: UInt32 = 0

  /// That of an empty file.
  init() {}

  init(byteCount: Int, checksum: UInt32) {
    (self.byteCount, self.checksum) = (byteCount, checksum)
  }

  init(of bytes: [UInt8]) {
    bytes.withUnsafeBytes { add($0) }
  }

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    byteCount += bytes.count
    checksum = crc32c(bytes, extending: checksum)
  }
}

private let pieceBytes = 1 << 20

extension StoreFiles {
  /// Reads a file; nil if there is none.
  func digest(of path: String) throws(StoreError) -> FileDigest? {
    try readPieces(of: path) { _, _ throws(StoreError) in }
  }

  package func copy(_ path: String, to other: String) throws(StoreError) -> FileDigest? {
    var copy: (any StoreFile)?
    let digest = try readPieces(of: path) { piece, offset throws(StoreError) in
      if copy == nil { copy = try make(other) }
      try copy?.write(piece, UnsafeRawBufferPointer(start: nil, count: 0), at: offset)
    }
    // An empty file has no pieces.
    if digest != nil, copy == nil { copy = try make(other) }
    return digest
  }

  /// Writes all bytes of a file to their places again; nothing if there is no file.
  ///
  /// After a failed sync, the system may take bytes for written that the device does not have. The
  /// next sync then writes only what was changed since.
  func rewrite(_ path: String) throws(StoreError) {
    guard let file = try openFile(path, forWriting: true) else { return }
    _ = try readPieces(of: path) { piece, offset throws(StoreError) in
      try file.write(piece, UnsafeRawBufferPointer(start: nil, count: 0), at: offset)
    }
  }

  private func make(_ path: String) throws(StoreError) -> any StoreFile {
    try create(path, with: [])
    guard let file = try openFile(path, forWriting: true) else { throw .io("\(path) is missing") }
    return file
  }

  /// Calls `body` with each piece of a file and its place; returns nil if there is no file.
  private func readPieces(
    of path: String,
    _ body: (_ piece: UnsafeRawBufferPointer, _ offset: Int) throws(StoreError) -> Void
  ) throws(StoreError) -> FileDigest? {
    // Open for all pieces: a file that is deleted meanwhile is still read to its end.
    guard let file = try openFile(path) else { return nil }
    var digest = FileDigest()
    var buffer = ValueBuffer()
    let nothing = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    while true {
      let bytes = buffer.resize(to: pieceBytes)
      let count = try file.read(into: bytes, nothing, at: digest.byteCount)
      guard count > 0 else { return digest }
      let piece = UnsafeRawBufferPointer(rebasing: bytes[..<count])
      try body(piece, digest.byteCount)
      digest.add(piece)
      // The buffer may not move, or be freed, while its bytes are in use.
      withExtendedLifetime(buffer) {}
    }
  }
}
