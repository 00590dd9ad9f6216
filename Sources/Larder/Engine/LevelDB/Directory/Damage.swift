// A damaged block stays in the store while it is open: LevelDB has no call to drop a table, and
// every compaction that reads the block fails. So when damage is found, a mark is left in the
// directory, LARDER.damaged, and the next opening can salvage the store.

import Synchronization

extension LevelDBEngine {
  /// The file that marks a store's directory as damaged.
  package static let damageMarkName = "LARDER.damaged"

  /// Returns `error`, and marks the store if LevelDB's files are damaged.
  func noted(_ error: StoreError) -> StoreError {
    guard case .corrupt(_, _, let message?) = error, options.readOnlyCause == nil,
      !isDamageNoted.exchange(true, ordering: .relaxed)
    else { return error }
    do throws(StoreError) {
      try options.files.replace(
        "\(path)/\(Self.damageMarkName)", with: Array("\(message)\n".utf8))
      try options.files.synchronizeDirectory(path)
    } catch {
      // The disk may be full. The next call that finds the damage retries it.
      isDamageNoted.store(false, ordering: .relaxed)
    }
    return error
  }

  /// The damage that was found in the store at `path`; nil if there was none, or there is no store.
  package static func notedDamage(
    at path: String, files: any StoreFiles = SystemFiles()
  ) throws(StoreError) -> String? {
    guard !path.utf8.contains(0), try files.kind(of: path) == .directory else { return nil }
    let mark = try files.readIfPresent("\(path)/\(damageMarkName)", limit: 4096)
    return mark.map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) }
  }

  /// Renames the directory of a damaged store.
  ///
  /// A directory that an earlier call left under the new name is deleted.
  ///
  /// - Returns: The new path: `path` with `.damaged` appended.
  /// - Throws: ``StoreError/locked(pid:)`` when the store is open; ``StoreError/io(_:)``. The
  ///   store then keeps its name.
  package static func setAside(
    _ path: String, files: any StoreFiles = SystemFiles()
  ) throws(StoreError) -> String {
    try withPlaceAside(for: path, files) { real, aside throws(StoreError) in
      try files.move(real, to: aside)
    }
  }

  /// Replaces a damaged store by a new one atomically, and renames the damaged one.
  ///
  /// A directory that an earlier call left under the new name is deleted.
  ///
  /// `make` creates the new store at its second argument, where nothing is, from the damaged store
  /// at its first one.
  ///
  /// - Returns: The damaged store's new path: `path` with `.damaged` appended.
  /// - Throws: ``StoreError/locked(pid:)`` when the store is open; errors of `make`;
  ///   ``StoreError/io(_:)``, also if the file system cannot exchange two directories. The store
  ///   then stays as it was.
  package static func replace(
    _ path: String, files: any StoreFiles = SystemFiles(),
    making make: (_ damaged: String, _ new: String) throws(StoreError) -> Void
  ) throws(StoreError) -> String {
    try withPlaceAside(for: path, files) { real, aside throws(StoreError) in
      try make(real, aside)
      try files.exchange(real, with: aside)
    }
  }

  /// Calls `body` with the real path of a store while holding the store's guard.
  ///
  /// - Throws: ``StoreError/locked(pid:)`` when the store is open;
  ///   ``StoreError/incompatible(_:)`` when `path` is not a store; errors of `body`.
  package static func withGuard<R>(
    ofStoreAt path: String, files: any StoreFiles = SystemFiles(),
    _ body: (_ real: String) throws(StoreError) -> R
  ) throws(StoreError) -> R {
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
    _ body: (_ real: String, _ aside: String) throws(StoreError) -> Void
  ) throws(StoreError) -> String {
    try withGuard(ofStoreAt: path, files: files) { real throws(StoreError) in
      let aside = real + ".damaged"
      if try files.kind(of: aside) != nil { try files.removeTree(aside) }
      try body(real, aside)
      try files.synchronizeDirectory(aside + "/..")
      return aside
    }
  }
}
