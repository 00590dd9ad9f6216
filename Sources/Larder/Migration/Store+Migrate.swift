/// The result of ``Store/migrate(_:)``.
///
/// If a later call resumes an interrupted migration, its report covers both.
public struct MigrationReport: Sendable, Hashable, Codable {
  // These names are on users' disks, in the mark of an unfinished migration.

  /// Entries that were rewritten.
  public var migrated = 0
  /// Entries that already had the cache's schema version and coder.
  ///
  /// After an interruption these include the entries of the last slice before it, at most 256.
  public var current = 0
  /// Entries that were left because they had expired.
  public var expired = 0
  /// Entries of a newer schema version or record format, which were left unchanged.
  public var newer = 0
  /// Entries that were left because their bytes are damaged, do not decode, or decode to a value
  /// that cannot be encoded.
  public var unreadable = 0

  init() {}
}

extension Store {
  /// Rewrites every entry of a cache that has an older schema version or another coder.
  ///
  /// ```swift
  /// let report = try store.migrate(genres)
  /// print("\(report.migrated) entries rewritten")
  /// ```
  ///
  /// Afterwards the program no longer needs the readers of older versions: see <doc:Migration>.
  ///
  /// An entry keeps its dates, and so its age and its expiry. Entries that have expired, are newer,
  /// or cannot be read stay as they are, byte for byte.
  ///
  /// The cache can be used meanwhile: entries that are saved or removed while this runs are never
  /// overwritten. ``Cache/touch(_:lifetime:validator:)`` may return false for an entry that is
  /// rewritten at the same moment. If the cache is cleared or dropped meanwhile, the migration
  /// ends.
  ///
  /// If the migration is interrupted, by an error or the end of the process, the entries rewritten
  /// so far stay, and the next call resumes there if the cache has the same schema version and
  /// coder. Opening the cache with others in between makes the next migration start from the
  /// beginning.
  ///
  /// - Parameter cache: A cache of this store.
  /// - Returns: The numbers of entries that were rewritten and left. When this returns, everything
  ///   it has written survives power loss.
  /// - Throws: ``StoreError/invalidArgument(_:)`` for a cache of another store: nothing is done.
  ///   ``StoreError/corrupt(cache:key:file:)`` with an empty key, after everything readable was
  ///   migrated, if a part of a file could not be read: later calls start before that part.
  ///   ``StoreError/diskFull``, ``StoreError/io(_:)`` or ``StoreError/writesDisabled(cause:)``
  ///   if a write failed: the slices before it are kept. ``StoreError/readOnly(cause:)``,
  ///   ``StoreError/closed``.
  /// - Complexity: One scan with a checksum for each entry; for each rewritten entry one decode,
  ///   one encode and one lookup; one append for up to 256 of them or about 1 MiB, and one fsync at
  ///   the end. Memory for such a slice and the largest value.
  @discardableResult public func migrate<Key, Value>(
    _ cache: Cache<Key, Value>
  ) throws -> MigrationReport {
    try requireWritable()
    guard cache.store === self else {
      throw StoreError.invalidArgument("cache \(cache.name) belongs to another store")
    }
    var migration = try Migration(of: cache.core, id: cache.core.usableID())
    try migration.run()
    return migration.report
  }
}
