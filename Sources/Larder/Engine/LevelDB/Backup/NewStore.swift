/// A store that is being created beside its directory; unless finished, it is deleted with this
/// value.
package struct NewStore: ~Copyable {
  private var directory: PartialDirectory
  /// The engine of the new store.
  package let engine: LevelDBEngine

  /// Begins a store in a directory that is missing or empty.
  ///
  /// - Parameters:
  ///   - target: The store's directory. Its parent must exist.
  ///   - source: A directory that must not contain `target`, its path without links; nil for none.
  ///   - options: The settings of the engine.
  /// - Throws: ``StoreError/invalidArgument(_:)`` and ``StoreError/locked(pid:)`` for `target`;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``. Nothing is left behind.
  package init(
    at target: String, outside source: String? = nil, options: LevelDBOptions = LevelDBOptions()
  ) throws(StoreError) {
    let directory = try PartialDirectory(for: target, outside: source, files: SystemFiles())
    engine = try LevelDBEngine(at: directory.path, options: options, lock: directory.lock)
    self.directory = directory
  }

  deinit {
    // LevelDB must not write to the directory while its files are deleted.
    do throws(StoreError) {
      try engine.close()
    } catch {
      return
    }
  }

  /// Closes the store, which is then on the device, and gives it its name.
  package mutating func finish() throws(StoreError) {
    try engine.flush()
    try engine.close()
    try directory.finish()
  }
}
