public import Foundation
import LarderEngine

extension Store {
  /// Makes a backup of the store in a directory, while others read and write.
  ///
  /// It holds everything that was acknowledged before the call, whatever its durability, and of
  /// what is written meanwhile the commits up to some moment: never half a batch, and no commit
  /// without those before it. Once this returns, the backup survives power loss. See
  /// <doc:WhatSurvivesWhat>.
  ///
  /// The store's tables become hard links where `directory` is on the same file system: then the
  /// backup takes little room, and more with each table that the store replaces later. Elsewhere
  /// everything is copied. Deleting a backup does nothing to its store, and the other way round. A
  /// backup is not opened as a store: ``restore(from:to:)`` makes one of it.
  ///
  /// - Parameter directory: A `file:` URL, where nothing is or an empty directory. Its parent must
  ///   exist, and it must lie outside the store. The backup is made in the parent under the name
  ///   `.NAME.larder-partial`, and gets its own name when it is whole and on the device. What a
  ///   process leaves there that is killed, the next backup to `directory` removes.
  /// - Throws: ``StoreError/invalidArgument(_:)`` when something is at `directory`, when it lies in
  ///   the store, and for a store in memory, which has no files. ``StoreError/locked(pid:)`` when a
  ///   backup is being made there already. ``StoreError/corrupt(cache:key:file:)`` when a file of
  ///   the store is missing, or its logs or its `MANIFEST` are damaged; a damaged entry in a table
  ///   is no error, and is in the backup as it is. ``StoreError/diskFull``, ``StoreError/io(_:)``,
  ///   ``StoreError/closed``. In each case the store goes on, and at `directory` is what was there
  ///   before.
  /// - Complexity: A checksum over all files, and a few fsyncs; with links refused, a copy and an
  ///   fsync of each file. Writers wait for two listings of the store's directory, and share the
  ///   device. Memory for the largest file.
  public func backup(to directory: URL) throws {
    guard let engine = context.engine as? LevelDBEngine else {
      throw StoreError.invalidArgument("a store in memory has no files to make a backup of")
    }
    let path = try Self.path(of: directory)
    do {
      try engine.backup(to: path, date: context.clock.now().timeIntervalSinceReferenceDate)
    } catch {
      throw StoreError(error)
    }
  }

  /// Makes a store of a backup, in another directory.
  ///
  /// Every file of the backup is checked before anything is made. Files are copied, never linked,
  /// and on the device when this returns. The new store is opened like any other one; it holds what
  /// the backup holds, and knows nothing of the store that the backup was made of, which may be
  /// open meanwhile.
  ///
  /// - Parameters:
  ///   - backup: A `file:` URL of a directory that ``backup(to:)`` has made. It is only read.
  ///   - directory: A `file:` URL, where nothing is or an empty directory. Its parent must exist,
  ///     and it must lie outside the backup. The store is made in the parent under the name
  ///     `.NAME.larder-partial`, and gets its own name when it is whole.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)``, which names the file, when one of the
  ///   backup's is damaged or missing, or one is there that is not of the backup;
  ///   ``StoreError/incompatible(_:)`` when `backup` is none, or one of a later version;
  ///   ``StoreError/invalidArgument(_:)`` when something is at `directory` or it lies in the
  ///   backup; ``StoreError/locked(pid:)`` when a store is being restored there already;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``. In each case at `directory` is what was
  ///   there before.
  /// - Complexity: Two reads of all files with a checksum, a copy of each, and an fsync for each.
  ///   Memory for the largest file.
  public static func restore(from backup: URL, to directory: URL) throws {
    let (source, target) = (try path(of: backup), try path(of: directory))
    do throws(EngineError) {
      try Backup(at: source).restore(to: target)
    } catch {
      throw StoreError(error)
    }
  }
}
