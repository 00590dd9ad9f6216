import CLarder

/// Recovers the files of a database and opens it, in a directory whose guard the caller holds.
///
/// If the disk has too little room for that, the reserve gives some of its own.
///
/// - Parameters:
///   - path: The directory.
///   - options: The engine's settings.
///   - reserve: Its reserve.
///   - holdsCompactions: Whether compactions begin only after the next write.
///   - afterFailedSync: Whether this process has failed to sync a segment.
/// - Returns: The database, and what was set aside after a power loss.
/// - Throws: The errors of ``recover(directory:files:stamp:separation:ownsFiles:afterFailedSync:)``
///   and of LevelDB.
func openDatabase(
  at path: String, _ options: LevelDBOptions, lending reserve: inout Reserve,
  holdsCompactions: Bool = false, afterFailedSync: Bool = false
) throws(StoreError) -> (OpaquePointer, Recovery?) {
  let wasShort = try reserve.lendToOpen()
  let recovery = try recover(
    directory: path, files: options.files, stamp: options.stamp, separation: options.separation,
    ownsFiles: options.readOnlyCause == nil, afterFailedSync: afterFailedSync)
  if wasShort { try UnnamedTables(in: path, files: options.files).remove() }
  return (try openDatabase(at: path, options, holdsCompactions: holdsCompactions), recovery)
}

private func openDatabase(
  at path: String, _ options: LevelDBOptions, holdsCompactions: Bool
) throws(StoreError) -> OpaquePointer {
  var database: OpaquePointer?
  var spelling = path
  while true {
    let status = (options.infoLogPath ?? "/dev/null").withCString { log in
      var settings = clarder_options(
        options, holdsCompactions: holdsCompactions, infoLogPath: log)
      return clarder_open(spelling, &settings, &database)
    }
    do throws(StoreError) {
      try check(status)
    } catch .locked where spelling.count < path.count + 8 {
      // The caller holds the guard of this directory, so LevelDB means another one: its table of
      // open databases, by path, still has one that was deleted while it was open. Spelt otherwise,
      // the path is not in the table. A lock held by another process stays held.
      spelling += "/."
      continue
    }
    if let database { return database }
  }
}

extension clarder_options {
  fileprivate init(
    _ options: LevelDBOptions, holdsCompactions: Bool, infoLogPath: UnsafePointer<CChar>
  ) {
    self.init(
      create_if_missing: options.createIfMissing, compression: options.compression,
      reuse_logs: options.reusesLogs, hold_compactions: holdsCompactions,
      filter_bits_per_key: Int32(options.filterBitsPerKey),
      max_open_files: Int32(options.maxOpenFiles), block_bytes: options.blockBytes,
      write_buffer_bytes: options.writeBufferBytes, block_cache_bytes: options.blockCacheBytes,
      max_file_bytes: options.maxFileBytes, info_log_path: infoLogPath,
      env: options.files.environment)
  }
}
