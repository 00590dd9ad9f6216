/// What ``Store/migrate(_:)`` did and found.
///
/// A migration that was interrupted and went on in a later call has one report, that call's.
public struct MigrationReport: Sendable, Hashable, Codable {
  // These names are on users' disks, in the mark of a migration that is not finished.

  /// Entries that were written anew.
  public var migrated = 0
  /// Entries that were of the cache's schema version and coder already.
  ///
  /// After an interruption, those of the last slice before it are counted here, 256 at most.
  public var current = 0
  /// Entries that were left because they had expired.
  public var expired = 0
  /// Entries that were left for a newer program: of a newer schema or record format.
  public var newer = 0
  /// Entries that were left because their bytes are damaged or do not decode, or because what they
  /// decode to cannot be encoded.
  public var unreadable = 0

  init() {}
}

extension Store {
  /// Writes every entry of a cache anew that is of an older schema version or another coder.
  ///
  /// Afterwards the readers of older versions can go from the program: see <doc:Migration>.
  ///
  /// An entry keeps its dates, and so its age and its expiry. What has expired, is newer, or cannot
  /// be read stays as it is, byte for byte.
  ///
  /// The cache can be used meanwhile: what is saved or removed while this runs is never undone.
  /// ``Cache/touch(_:)`` may answer false for an entry that is written anew in the same moment. A
  /// cache that is cleared meanwhile has nothing left to migrate, and this ends.
  ///
  /// When it is interrupted, by an error or the end of the process, all that was done stays, and
  /// the next call goes on from there, if the cache has the same schema version and coder. A
  /// program that opens the cache with others in between makes it start anew.
  ///
  /// - Parameter cache: A cache of this store.
  /// - Returns: How many entries were written anew and left. Once it returns, what it has written
  ///   survives power loss.
  /// - Throws: ``StoreError/invalidArgument(_:)`` for a cache of another store: nothing is done.
  ///   ``StoreError/corrupt(cache:key:file:)`` with an empty key, after everything readable was
  ///   dealt with, when a part of a file could not be read: later calls go on before that part.
  ///   ``StoreError/diskFull``, ``StoreError/io(_:)`` or ``StoreError/writesDisabled(cause:)``
  ///   when a write failed: the slices before it are kept. ``StoreError/closed``.
  /// - Complexity: One scan with a checksum for each entry, and for each that is written anew one
  ///   decode, one encode and one lookup; one append for up to 256 of them or about 1 MiB, and one
  ///   fsync at the end. Memory for such a slice and the largest value.
  @discardableResult public func migrate<Key, Value>(
    _ cache: Cache<Key, Value>
  ) throws -> MigrationReport {
    try requireWritable()
    guard cache.store === self else {
      throw StoreError.invalidArgument("cache \(cache.name) belongs to another store")
    }
    var migration = try Migration(of: cache.core, in: self)
    try migration.run()
    return migration.report
  }
}
