import CLarder

/// The system's files, and one directory in memory in which LevelDB can open a database.
///
/// The directory in memory holds no further directories. It needs no room on a disk.
package final class MemoryFiles: StoreFiles {
  /// The directory in memory.
  ///
  /// No file can be there on the system's disks.
  package static let directory = "/dev/null/larder"

  private let memory = clarder_memory_create()
  private let system = SystemFiles()

  package init() {}

  deinit { clarder_memory_free(memory) }

  package var environment: OpaquePointer? { memory }

  private func isInMemory(_ path: String) -> Bool { path.hasPrefix(Self.directory) }

  package func kind(of path: String) throws(StoreError) -> FileKind? {
    guard isInMemory(path) else { return try system.kind(of: path) }
    if path == Self.directory { return .directory }
    return clarder_memory_has(memory, path) ? .other : nil
  }

  package func realPath(_ path: String) throws(StoreError) -> String {
    isInMemory(path) ? path : try system.realPath(path)
  }

  package func names(in path: String) throws(StoreError) -> Set<String> {
    guard isInMemory(path) else { return try system.names(in: path) }
    let buffer = ValueBuffer()
    try check(clarder_memory_list(memory, path, buffer.memory.handle))
    let bytes = buffer.withBytes { [UInt8]($0) }
    return Set(bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) })
  }

  package func requireWritable(_ path: String) throws(StoreError) {
    if !isInMemory(path) { try system.requireWritable(path) }
  }

  package func makeDirectory(_ path: String) throws(StoreError) {
    if !isInMemory(path) { try system.makeDirectory(path) }
  }

  package func byteCount(of path: String) throws(StoreError) -> Int? {
    guard isInMemory(path) else { return try system.byteCount(of: path) }
    return try readIfPresent(path)?.count
  }

  package func read(_ path: String, limit: Int?) throws(StoreError) -> [UInt8] {
    guard isInMemory(path) else { return try system.read(path, limit: limit) }
    let buffer = ValueBuffer()
    try check(clarder_memory_read(memory, path, buffer.memory.handle))
    return buffer.withBytes { [UInt8]($0.extracting(first: limit ?? .max)) }
  }

  package func replace(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    try create(path, with: bytes)
  }

  package func create(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    guard isInMemory(path) else { return try system.create(path, with: bytes) }
    try check(
      bytes.withUnsafeBytes { clarder_memory_write(memory, path, clarder_slice($0)) })
  }

  package func copy(_ path: String, to other: String) throws(StoreError) -> FileDigest? {
    guard let bytes = try readIfPresent(path) else { return nil }
    try create(other, with: bytes)
    return FileDigest(of: bytes)
  }

  package func openFile(
    _ path: String, forWriting: Bool
  ) throws(StoreError) -> (any StoreFile)? {
    guard isInMemory(path) else { return try system.openFile(path, forWriting: forWriting) }
    guard clarder_memory_has(memory, path) else { return nil }
    return FileInMemory(path, of: self)
  }

  /// Reads a part of a file in memory; fewer bytes only at the end of the file.
  fileprivate func read(
    _ path: String, from offset: Int, into bytes: UnsafeMutableRawBufferPointer
  ) throws(StoreError) -> Int {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return 0 }
    var count = bytes.count
    try check(clarder_memory_read_part(memory, path, UInt64(offset), start, &count))
    return count
  }

  package func link(_ path: String, as other: String) throws(StoreError) -> LinkOutcome {
    .refused
  }

  package func allocate(_ path: String, count: Int) throws(StoreError) {
    if !isInMemory(path) { try system.allocate(path, count: count) }
  }

  package func truncate(_ path: String, to count: Int) throws(StoreError) {
    guard isInMemory(path) else { return try system.truncate(path, to: count) }
    try create(path, with: try read(path, limit: count))
  }

  package func move(_ path: String, to other: String) throws(StoreError) {
    guard isInMemory(path) else { return try system.move(path, to: other) }
    try check(clarder_memory_rename(memory, path, other))
  }

  package func exchange(_ path: String, with other: String) throws(StoreError) {
    try system.exchange(path, with: other)
  }

  package func remove(_ path: String) throws(StoreError) {
    guard isInMemory(path) else { return try system.remove(path) }
    try check(clarder_memory_remove(memory, path))
  }

  package func removeDirectory(_ path: String) throws(StoreError) {
    if !isInMemory(path) { try system.removeDirectory(path) }
  }

  package func synchronize(_ path: String) throws(StoreError) {
    if !isInMemory(path) { try system.synchronize(path) }
  }

  package func synchronizeDirectory(_ path: String) throws(StoreError) {
    if !isInMemory(path) { try system.synchronizeDirectory(path) }
  }

  package func availableBytes(in path: String) throws(StoreError) -> UInt64 {
    isInMemory(path) ? 1 << 40 : try system.availableBytes(in: path)
  }

  package func takeGuard(at path: String) throws(StoreError) -> any FileGuard {
    isInMemory(path) ? MemoryGuard() : try system.takeGuard(at: path)
  }
}

/// A file in memory, which is only read: LevelDB writes the others.
private final class FileInMemory: StoreFile {
  private let path: String
  private let files: MemoryFiles

  init(_ path: String, of files: MemoryFiles) { (self.path, self.files) = (path, files) }

  func byteCount() throws(StoreError) -> Int { try files.byteCount(of: path) ?? 0 }

  func read(
    into first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    at offset: Int
  ) throws(StoreError) -> Int {
    let count = try files.read(path, from: offset, into: first)
    guard count == first.count else { return count }
    return count + (try files.read(path, from: offset + count, into: second))
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StoreError) {
    throw .io("\(path) is a file in memory, which is only read")
  }

  func allocate(upTo end: Int) throws(StoreError) {}

  func truncate(to count: Int) throws(StoreError) {
    throw .io("\(path) is a file in memory, which is only read")
  }

  func synchronize() throws(StoreError) {}
}

/// A guard without a lock: no other process can open files in this one's memory.
private final class MemoryGuard: FileGuard {
  func isInPlace() throws(StoreError) -> Bool { true }
  func unlock() {}
  func lockAgain() throws(StoreError) {}
  func release() {}
}

// @unchecked: LevelDB's file system in memory has a lock of its own.
extension MemoryFiles: @unchecked Sendable {}
