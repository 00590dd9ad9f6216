import CLarder

/// Opens the LevelDB database in a directory whose guard the caller holds.
func openDatabase(
  at path: String, _ options: LevelDBOptions, holdsCompactions: Bool = false
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
