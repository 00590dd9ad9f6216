// A damaged block stays where it is while the store is open: LevelDB has no call to drop a table,
// and every compaction that reads the block fails. So damage that is met leaves a mark in the
// directory, LARDER.damaged, and the next opening can salvage the store.

import Synchronization

extension LevelDBEngine {
  /// The file in a store's directory that says that damage was met there.
  package static let damageMarkName = "LARDER.damaged"

  /// Returns `error`, and marks the store if LevelDB's files are damaged.
  func noted(_ error: EngineError) -> EngineError {
    guard case .corrupt(let message) = error, options.readOnlyCause == nil,
      !isDamageNoted.exchange(true, ordering: .relaxed)
    else { return error }
    do throws(EngineError) {
      try options.files.replace(
        "\(path)/\(Self.damageMarkName)", with: Array("\(message)\n".utf8))
      try options.files.synchronizeDirectory(path)
    } catch {
      // The disk may be full. Whatever meets the damage next tries it again.
      isDamageNoted.store(false, ordering: .relaxed)
    }
    return error
  }

  /// What damage was met in the store at `path`; nil if none was, or there is no store.
  package static func notedDamage(
    at path: String, files: any StoreFiles = SystemFiles()
  ) throws(EngineError) -> String? {
    guard !path.utf8.contains(0), try files.kind(of: path) == .directory else { return nil }
    let mark = try files.readIfPresent("\(path)/\(damageMarkName)")
    return mark.map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) }
  }

  /// Gives the directory of a damaged store another name.
  ///
  /// What an earlier time left under that name is deleted.
  ///
  /// - Returns: The name: the path with `.damaged` behind it.
  /// - Throws: ``EngineError/locked(pid:)`` when it is open; ``EngineError/io(_:)``. Then it has
  ///   its old name.
  package static func setAside(
    _ path: String, files: any StoreFiles = SystemFiles()
  ) throws(EngineError) -> String {
    try withPlaceAside(for: path, files) { real, aside throws(EngineError) in
      try files.move(real, to: aside)
    }
  }

  /// Puts a new store in the place of a damaged one, which gets another name, in one step.
  ///
  /// What an earlier time left under that name is deleted.
  ///
  /// `make` makes the new store in its second argument, where nothing is, of its first one, which
  /// is the damaged store.
  ///
  /// - Returns: The old store's name: the path with `.damaged` behind it.
  /// - Throws: ``EngineError/locked(pid:)`` when the store is open; what `make` throws;
  ///   ``EngineError/io(_:)``, also where the file system cannot exchange two directories. Then the
  ///   store is where it was.
  package static func replace(
    _ path: String, files: any StoreFiles = SystemFiles(),
    making make: (_ damaged: String, _ new: String) throws(EngineError) -> Void
  ) throws(EngineError) -> String {
    try withPlaceAside(for: path, files) { real, aside throws(EngineError) in
      try make(real, aside)
      try files.exchange(real, with: aside)
    }
  }

  /// Calls `body` with the real path of a store, and holds the store's guard meanwhile.
  ///
  /// - Throws: ``EngineError/locked(pid:)`` when it is open; ``EngineError/incompatible(_:)`` when
  ///   it is not a store; what `body` throws.
  package static func withGuard<R>(
    ofStoreAt path: String, files: any StoreFiles = SystemFiles(),
    _ body: (_ real: String) throws(EngineError) -> R
  ) throws(EngineError) -> R {
    guard !path.utf8.contains(0) else { throw .invalidArgument("the path contains a NUL") }
    let real = try files.realPath(path)
    guard try files.kind(of: "\(real)/\(StoreMarker.fileName)") != nil else {
      throw .incompatible("\(path) is not a store: \(StoreMarker.fileName) is missing")
    }
    let lock = try files.takeGuard(at: "\(real)/\(StoreMarker.guardFileName)")
    defer { lock.release() }
    return try body(real)
  }

  private static func withPlaceAside(
    for path: String, _ files: any StoreFiles,
    _ body: (_ real: String, _ aside: String) throws(EngineError) -> Void
  ) throws(EngineError) -> String {
    try withGuard(ofStoreAt: path, files: files) { real throws(EngineError) in
      let aside = real + ".damaged"
      if try files.kind(of: aside) != nil { try files.removeTree(aside) }
      try body(real, aside)
      try files.synchronizeDirectory(aside + "/..")
      return aside
    }
  }
}
