public import Foundation

extension Store {
  /// Copies the readable entries of a damaged store to a new store.
  ///
  /// ```swift
  /// let report = try Store.salvage(from: damaged, to: directory.appending(path: "salvaged"))
  /// print(report)                                  // the entries copied, and the losses
  /// ```
  ///
  /// Each entry is copied with its dates, its schema version and its expiry. Only the newest entry
  /// of each key is copied. Entries that were removed, replaced or cleared do not reappear because
  /// a table is damaged; an entry whose newest state cannot be read is left out. Changes in a lost
  /// part of the log are lost. Expired entries are copied and stay expired. Entries whose cache's
  /// registration is lost get a cache of their own, see ``SalvageReport/namelessEntries``.
  ///
  /// - Parameters:
  ///   - damaged: A `file:` URL of a store that is not open. It is only read.
  ///   - directory: A `file:` URL of a missing or empty directory. Its parent must exist, and it
  ///     must lie outside the damaged store.
  /// - Returns: The entries that were copied, and the key ranges that could not be read.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` if no intact `MANIFEST` lists the store's
  ///   tables, so that nothing can be salvaged; ``StoreError/incompatible(_:)`` if `damaged` is not
  ///   a store, or has a newer format; ``StoreError/invalidArgument(_:)`` if `directory` is neither
  ///   missing nor empty, or lies in `damaged`; ``StoreError/locked(pid:)`` if the damaged store is
  ///   open, or another call is creating a store at `directory`; ``StoreError/io(_:)``,
  ///   ``StoreError/diskFull``. In each case `directory` is unchanged.
  /// - Complexity: One scan and one lookup for each entry, one append for 256 entries, and one
  ///   fsync. Disk space for a copy of the store.
  @discardableResult public static func salvage(
    from damaged: URL, to directory: URL
  ) throws -> SalvageReport {
    try salvage(from: damaged, to: directory, rebuilding: nil).report
  }

  /// Salvages also a store whose MANIFEST is lost.
  ///
  /// - Returns: Also what a rebuild could not read; nil if a MANIFEST listed the tables.
  package static func salvage(
    from damaged: URL, to directory: URL, rebuilding: Rebuilding?
  ) throws -> (report: SalvageReport, rebuild: Rebuild.Report?) {
    let (source, target) = (try path(of: damaged), try path(of: directory))
    return try LevelDBEngine.withGuard(ofStoreAt: source) { real throws(StoreError) in
      try salvage(from: real, to: target, rebuilding: rebuilding)
    }
  }

  static func salvage(
    from source: String, to target: String, rebuilding: Rebuilding? = nil
  ) throws(StoreError) -> (report: SalvageReport, rebuild: Rebuild.Report?) {
    var report = SalvageReport()
    let options = Store.Options().engineOptions
    let rebuild = try LevelDBEngine.salvage(
      from: source, to: target, options: options, rebuilding: rebuilding
    ) { old, new throws(StoreError) in
      var salvage = Salvage(from: old, to: new)
      try salvage.run()
      report = salvage.report
    }
    return (report, rebuild)
  }
}
