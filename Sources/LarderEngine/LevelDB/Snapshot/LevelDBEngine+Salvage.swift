extension LevelDBEngine {
  /// Creates a store from the readable part of a damaged one, in a directory that is missing or
  /// empty.
  ///
  /// - Parameters:
  ///   - source: The damaged store's directory. It is only read, and no process may write to it
  ///     meanwhile.
  ///   - target: The new store's directory. Its parent must exist.
  ///   - options: The settings of both engines, with the values that may be kept in segments.
  ///   - copy: Copies rows from its first argument, which is read-only, to its second one.
  /// - Throws: Errors of `copy`; ``EngineError/invalidArgument(_:)`` and
  ///   ``EngineError/locked(pid:)`` for `target`; ``EngineError/corrupt(_:)`` when nothing can be
  ///   salvaged; ``EngineError/io(_:)``, ``EngineError/diskFull``. `target` is then as it was
  ///   before.
  package static func salvage(
    from source: String, to target: String, options: LevelDBOptions = LevelDBOptions(),
    copying copy: (LevelDBEngine, LevelDBEngine) throws(EngineError) -> Void
  ) throws(EngineError) {
    let real = try SystemFiles().realPath(source)
    var new = try NewStore(at: target, outside: real, options: options)
    let damaged = try StoreSnapshot(salvaging: real).open(
      options: options, cause: "it is being salvaged")
    try copy(damaged, new.engine)
    try damaged.close()
    try new.finish()
  }
}
