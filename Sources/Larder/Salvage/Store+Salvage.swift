public import Foundation
import LarderEngine

extension Store {
  /// Makes a new store of what can be read of a damaged one.
  ///
  /// ```swift
  /// let report = try Store.salvage(from: damaged, to: directory.appending(path: "salvaged"))
  /// print(report)                                  // how many entries, and what is lost
  /// ```
  ///
  /// Each entry is copied with its dates, its schema version and its expiry. Of each key, only the
  /// newest entry is copied: nothing that was removed, replaced or cleared comes back because a
  /// table is damaged. An entry whose newest state cannot be read is left out. A change that was
  /// lost with a part of the log is as if it had not been made. Expired entries are copied and stay
  /// expired.
  ///
  /// - Parameters:
  ///   - damaged: A `file:` URL of a store that is not open. It is only read.
  ///   - directory: A `file:` URL, where nothing is or an empty directory. Its parent must exist,
  ///     and it must lie outside the damaged store.
  /// - Returns: What was copied, and what could not be read.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` when no intact `MANIFEST` says which tables
  ///   belong to the store: nothing can be salvaged then. ``StoreError/incompatible(_:)`` when it
  ///   is not a store, or a newer one; ``StoreError/invalidArgument(_:)`` when something is at
  ///   `directory`; ``StoreError/locked(pid:)`` when the damaged store is open, or a store is being
  ///   made at `directory`; ``StoreError/io(_:)``, ``StoreError/diskFull``. In each case at
  ///   `directory` is what was there before.
  /// - Complexity: One scan and one lookup for each entry, one append for 256 of them, and an fsync
  ///   at the end. Room for a copy of the store.
  @discardableResult public static func salvage(
    from damaged: URL, to directory: URL
  ) throws -> SalvageReport {
    let (source, target) = (try path(of: damaged), try path(of: directory))
    do throws(EngineError) {
      return try LevelDBEngine.withGuard(ofStoreAt: source) { real throws(EngineError) in
        try salvage(from: real, to: target)
      }
    } catch {
      throw StoreError(error)
    }
  }

  static func salvage(from source: String, to target: String) throws(EngineError) -> SalvageReport {
    var report = SalvageReport()
    try LevelDBEngine.salvage(from: source, to: target) { old, new throws(EngineError) in
      var salvage = Salvage(from: old, to: new)
      try salvage.run()
      report = salvage.report
    }
    return report
  }
}
