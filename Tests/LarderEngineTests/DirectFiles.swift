import Foundation
import LarderEngine
import Synchronization

/// What a recovery asks of the file system, with cuts that can be made to fail.
final class DirectFiles: StoreFiles {
  private let state: Mutex<(allowedCuts: Int, cut: [String])>

  init(allowedCuts: Int = .max) { state = Mutex((allowedCuts, [])) }

  /// The names of the files that were cut, in the order of it.
  var cut: [String] { state.withLock { $0.cut } }

  var environment: OpaquePointer? { nil }

  func kind(of path: String) throws(EngineError) -> FileKind? {
    var isDirectory: ObjCBool = false
    let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
    return isThere ? (isDirectory.boolValue ? .directory : .other) : nil
  }

  func names(in path: String) throws(EngineError) -> Set<String> {
    try FileSystem.names(in: path)
  }

  func makeDirectory(_ path: String) throws(EngineError) {
    guard try kind(of: path) == nil else { return }
    try system {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
  }

  func read(_ path: String, limit: Int?) throws(EngineError) -> [UInt8] {
    var bytes: [UInt8] = []
    try system { bytes = Array(try Data(contentsOf: URL(filePath: path))) }
    return limit.map { Array(bytes.prefix($0)) } ?? bytes
  }

  func replace(_ path: String, with bytes: [UInt8]) throws(EngineError) {
    try system { try Data(bytes).write(to: URL(filePath: path)) }
  }

  func truncate(_ path: String, to count: Int) throws(EngineError) {
    let isAllowed = state.withLock { state in
      guard state.cut.count < state.allowedCuts else { return false }
      state.cut.append((path as NSString).lastPathComponent)
      return true
    }
    guard isAllowed else { throw .io("the power is gone") }
    try replace(path, with: try read(path, limit: count))
  }

  func remove(_ path: String) throws(EngineError) {
    try system { try FileManager.default.removeItem(atPath: path) }
  }

  func synchronizeDirectory(_ path: String) throws(EngineError) {}

  private func system(_ body: () throws -> Void) throws(EngineError) {
    do { try body() } catch { throw .io("\(error)") }
  }
}

// What no recovery asks for.
extension DirectFiles {
  private static let unheard = EngineError.io("not asked for by a recovery")

  func realPath(_ path: String) throws(EngineError) -> String { throw Self.unheard }
  func requireWritable(_ path: String) throws(EngineError) { throw Self.unheard }
  func move(_ path: String, to other: String) throws(EngineError) { throw Self.unheard }
  func synchronize(_ path: String) throws(EngineError) { throw Self.unheard }
  func availableBytes(in path: String) throws(EngineError) -> UInt64 { throw Self.unheard }
  func takeGuard(at path: String) throws(EngineError) -> any FileGuard { throw Self.unheard }
}
