extension LevelDBEngine {
  /// Creates a store from the readable part of a damaged one, in a directory that is missing or
  /// empty.
  ///
  /// - Parameters:
  ///   - source: The damaged store's directory. It is only read, and no process may write to it
  ///     meanwhile.
  ///   - target: The new store's directory. Its parent must exist.
  ///   - options: The settings of both engines, with the values that may be kept in segments.
  ///   - rebuilding: What a rebuild does if no intact MANIFEST lists the tables; nil for none.
  ///   - copy: Copies rows from its first argument, which is read-only, to its second one.
  /// - Returns: What a rebuild could not read; nil if a MANIFEST listed the tables.
  /// - Throws: Errors of `copy`; ``StoreError/incompatible(_:)`` for a later format;
  ///   ``StoreError/invalidArgument(_:)`` and
  ///   ``StoreError/locked(pid:)`` for `target`; ``StoreError/corrupt(_:)`` when nothing can be
  ///   salvaged; ``StoreError/io(_:)``, ``StoreError/diskFull``. `target` is then as it was
  ///   before.
  @discardableResult package static func salvage(
    from source: String, to target: String, options: LevelDBOptions = LevelDBOptions(),
    rebuilding: Rebuilding? = nil,
    copying copy: (LevelDBEngine, LevelDBEngine) throws(StoreError) -> Void
  ) throws(StoreError) -> Rebuild.Report? {
    let files = SystemFiles()
    let real = try files.realPath(source)
    _ = try StoreDirectory.readableVersion(in: real, files)
    var new = try NewStore(at: target, outside: real, options: options)
    let snapshot = try StoreSnapshot(salvaging: real, rebuilding: rebuilding)
    let damaged = try snapshot.open(options: options, cause: "it is being salvaged")
    try copy(damaged, new.engine)
    try damaged.close()
    try new.finish()
    return snapshot.capture.rebuild
  }
}
