import Foundation
import Larder
import Synchronization

/// The system's files, with recorded truncations that can fail, and hooks for some calls.
final class DirectFiles: StoreFiles {
  private let system = SystemFiles()
  private let state: Mutex<(allowedCuts: Int, cut: [String])>
  private let refusesLinks: Bool
  private let watch: Watch
  private let checkPlace: PlaceCheck
  /// Whether the next sync of an open file fails.
  let failsNextSync = Atomic(false)
  /// Whether writes to open files fail.
  let failsWrites = Atomic(false)

  /// Called before a backup lists the store, links one of its files, or moves to its final path,
  /// before a segment is opened or synced, and before a file is removed or a directory synced; and
  /// with the bytes of a file that are read or written at once.
  typealias Watch = @Sendable (Call) -> Void
  enum Call: Equatable {
    case list, link, move, openFile, read(Int), write(Range<Int>), syncFile, remove, syncDirectory
  }

  /// Called before a store checks whether its directory is still at its path.
  typealias PlaceCheck = @Sendable () throws(StoreError) -> Void

  init(
    allowedCuts: Int = .max, refusesLinks: Bool = false,
    checkPlace: @escaping PlaceCheck = { () throws(StoreError) in },
    watch: @escaping Watch = { _ in }
  ) {
    (self.refusesLinks, self.watch) = (refusesLinks, watch)
    state = Mutex((allowedCuts, []))
    self.checkPlace = checkPlace
  }

  /// The names of the truncated files, in order.
  var cut: [String] { state.withLock { $0.cut } }

  var environment: OpaquePointer? { nil }

  func truncate(_ path: String, to count: Int) throws(StoreError) {
    let isAllowed = state.withLock { state in
      guard state.cut.count < state.allowedCuts else { return false }
      state.cut.append((path as NSString).lastPathComponent)
      return true
    }
    guard isAllowed else { throw .io("the power is gone") }
    try system.truncate(path, to: count)
  }

  func openFile(_ path: String, forWriting: Bool) throws(StoreError) -> (any StoreFile)? {
    watch(.openFile)
    return try system.openFile(path, forWriting: forWriting).map { HookedFile($0, of: self, watch) }
  }
  func kind(of path: String) throws(StoreError) -> FileKind? { try system.kind(of: path) }
  func realPath(_ path: String) throws(StoreError) -> String { try system.realPath(path) }
  func names(in path: String) throws(StoreError) -> Set<String> {
    watch(.list)
    return try system.names(in: path)
  }
  func requireWritable(_ path: String) throws(StoreError) { try system.requireWritable(path) }
  func makeDirectory(_ path: String) throws(StoreError) { try system.makeDirectory(path) }
  func read(_ path: String, limit: Int?) throws(StoreError) -> [UInt8] {
    let bytes = try system.read(path, limit: limit)
    watch(.read(bytes.count))
    return bytes
  }
  func read(_ path: String, from offset: Int, count: Int) throws(StoreError) -> [UInt8] {
    try system.read(path, from: offset, count: count)
  }
  func byteCount(of path: String) throws(StoreError) -> Int? { try system.byteCount(of: path) }
  func replace(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    try system.replace(path, with: bytes)
  }
  func exchange(_ path: String, with other: String) throws(StoreError) {
    try system.exchange(path, with: other)
  }
  func create(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    try system.create(path, with: bytes)
  }
  func link(_ path: String, as other: String) throws(StoreError) -> LinkOutcome {
    watch(.link)
    return refusesLinks ? .refused : try system.link(path, as: other)
  }
  func allocate(_ path: String, count: Int) throws(StoreError) {
    try system.allocate(path, count: count)
  }
  func move(_ path: String, to other: String) throws(StoreError) {
    watch(.move)
    try system.move(path, to: other)
  }
  func remove(_ path: String) throws(StoreError) {
    watch(.remove)
    try system.remove(path)
  }
  func removeDirectory(_ path: String) throws(StoreError) {
    try system.removeDirectory(path)
  }
  func synchronize(_ path: String) throws(StoreError) { try system.synchronize(path) }
  func synchronizeDirectory(_ path: String) throws(StoreError) {
    watch(.syncDirectory)
    try system.synchronizeDirectory(path)
  }
  func availableBytes(in path: String) throws(StoreError) -> UInt64 {
    try system.availableBytes(in: path)
  }
  func takeGuard(at path: String) throws(StoreError) -> any FileGuard {
    HookedGuard(try system.takeGuard(at: path), checkPlace)
  }
}

private final class HookedFile: StoreFile {
  private let system: any StoreFile
  private let files: DirectFiles
  private let watch: DirectFiles.Watch

  init(_ system: any StoreFile, of files: DirectFiles, _ watch: @escaping DirectFiles.Watch) {
    (self.system, self.files, self.watch) = (system, files, watch)
  }

  func byteCount() throws(StoreError) -> Int { try system.byteCount() }

  func read(
    into first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer,
    at offset: Int
  ) throws(StoreError) -> Int {
    watch(.read(first.count + second.count))
    return try system.read(into: first, second, at: offset)
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StoreError) {
    watch(.write(offset..<offset + first.count + second.count))
    if files.failsWrites.load(ordering: .relaxed) { throw .io("a failed write") }
    try system.write(first, second, at: offset)
  }

  func allocate(upTo end: Int) throws(StoreError) { try system.allocate(upTo: end) }

  func truncate(to count: Int) throws(StoreError) { try system.truncate(to: count) }

  func synchronize() throws(StoreError) {
    watch(.syncFile)
    if files.failsNextSync.exchange(false, ordering: .relaxed) { throw .io("a failed sync") }
    try system.synchronize()
  }
}

private final class HookedGuard: FileGuard {
  private let system: any FileGuard
  private let checkPlace: DirectFiles.PlaceCheck

  init(_ system: any FileGuard, _ checkPlace: @escaping DirectFiles.PlaceCheck) {
    (self.system, self.checkPlace) = (system, checkPlace)
  }

  func isInPlace() throws(StoreError) -> Bool {
    try checkPlace()
    return try system.isInPlace()
  }

  func unlock() { system.unlock() }

  func lockAgain() throws(StoreError) { try system.lockAgain() }

  func release() { system.release() }
}
