public import Foundation

extension Store {
  /// Creates a backup of the store in a directory, while the store is in use.
  ///
  /// ```swift
  /// try store.backup(to: backups.appending(path: "monday"))
  /// ```
  ///
  /// The backup contains every write that was acknowledged before the call, whatever its
  /// durability. Of the writes during the call, it contains all commits up to some moment: no part
  /// of a batch, and no commit without the earlier ones. Once this returns, the backup survives
  /// power loss. See <doc:WhatSurvivesWhat>.
  ///
  /// If `directory` is on the same file system as the store, the backup has hard links to the
  /// store's tables. It then takes little space at first, and more as the store replaces tables. On
  /// another file system, every file is copied. Deleting the backup does not affect the store, nor
  /// the reverse. A backup cannot be opened as a store; use ``restore(from:to:)``.
  ///
  /// - Parameter directory: A `file:` URL of a missing or empty directory. Its parent must exist,
  ///   and it must lie outside the store. The backup is created in the parent as
  ///   `.NAME.larder-partial`, and renamed once it is complete and on the device. If the process is
  ///   killed before that, the next backup to `directory` removes the partial one.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if `directory` is neither missing nor empty, if
  ///   it lies in the store, or if the store is in memory; ``StoreError/locked(pid:)`` if another
  ///   backup to `directory` is running; ``StoreError/corrupt(cache:key:file:)`` if a file of the
  ///   store is missing, or its logs or its `MANIFEST` are damaged; ``StoreError/diskFull``,
  ///   ``StoreError/io(_:)``, ``StoreError/closed``. In each case the store stays usable, and
  ///   `directory` is unchanged. A damaged entry in a table is not an error; it is backed up as it
  ///   is.
  /// - Complexity: A checksum of all files, and a few fsyncs. Without hard links, also a copy and
  ///   an fsync of each file. Writers wait while the store's directory is listed twice, and share
  ///   the device. Memory for the largest file.
  public func backup(to directory: URL) throws {
    let path = try Self.path(of: directory)
    try context.engine.backup(to: path, date: context.clock.now().timeIntervalSinceReferenceDate)
  }

  /// Restores a backup to a new store in another directory.
  ///
  /// ```swift
  /// try Store.restore(from: backups.appending(path: "monday"), to: directory)
  /// let store = try Store(at: directory)
  /// ```
  ///
  /// Every file of the backup is checked before anything is created. Files are copied, never
  /// linked, and are on the device when this returns. The restored store is independent of the
  /// store that was backed up, which may be open at the same time.
  ///
  /// - Parameters:
  ///   - backup: A `file:` URL of a directory that ``backup(to:)`` created. It is only read.
  ///   - directory: A `file:` URL of a missing or empty directory. Its parent must exist, and it
  ///     must lie outside the backup. The store is created in the parent as
  ///     `.NAME.larder-partial`, and renamed once it is complete.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)``, which names the file, if a file of the
  ///   backup is damaged or missing, or a file does not belong to it;
  ///   ``StoreError/incompatible(_:)`` if `backup` is not a backup, or a later version created it;
  ///   ``StoreError/invalidArgument(_:)`` if `directory` is neither missing nor empty, or lies in
  ///   the backup; ``StoreError/locked(pid:)`` if another restore to `directory` is running;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``. In each case `directory` is unchanged.
  /// - Complexity: Two reads and two checksums of all files, and a copy and an fsync of each.
  ///   Memory for the largest file.
  public static func restore(from backup: URL, to directory: URL) throws {
    let (source, target) = (try path(of: backup), try path(of: directory))
    try Backup(at: source).restore(to: target)
  }
}
