import CLarderLevelDB
import Synchronization

/// An ordered map from bytes to bytes, kept by LevelDB in one directory.
///
/// One engine has a directory open at a time, in all processes. What a process wrote survives its
/// being killed; what it wrote with `synced` survives power loss too. Close it, or let the last
/// reference go, which closes it: a cursor keeps its engine alive.
///
/// Inside: `gate` keeps the database from being freed under a call; `writer` lets one write in at
/// a time; `iterators` are those of live cursors, for ``close()`` to free before the database.
package final class LevelDBEngine: StorageEngine {
  let database: OpaquePointer
  let gate = Gate()
  let cursorSliceEntries: Int
  private let writer: Mutex<LevelDBWriter>
  private let iterators = Mutex<[ObjectIdentifier: LevelDBIterator]>([:])
  // Nil once the engine is closed.
  private let directory: Mutex<StoreDirectory?>

  /// Opens the store in the directory at `path`, and creates it if it may.
  ///
  /// - Parameters:
  ///   - path: A directory, or where one is to be made, for the owner alone. Only the last part of
  ///     the path is made.
  ///   - options: How the engine works.
  /// - Throws: ``EngineError/invalidArgument(_:)`` for a setting out of range,
  ///   ``EngineError/locked(pid:)`` when the store is open already, by whatever path,
  ///   ``EngineError/incompatible(_:)`` for what is no store or a newer one,
  ///   ``EngineError/corrupt(_:)`` for a store that is damaged, ``EngineError/io(_:)`` for a
  ///   missing store or parent and for what the system refuses, and ``EngineError/diskFull``. What
  ///   can be seen without opening LevelDB is refused first, and then nothing was changed.
  package init(
    at path: String, options: LevelDBOptions = LevelDBOptions()
  ) throws(EngineError) {
    try options.checkRanges()
    let directory = try StoreDirectory(at: path, createIfMissing: options.createIfMissing)
    database = try LevelDBEngine.open(directory.path, options)
    cursorSliceEntries = options.cursorSliceEntries
    do throws(EngineError) {
      writer = Mutex(try LevelDBWriter(of: database, refusesWrites: options.refusesWrites))
    } catch {
      clarder_close(database)
      throw error
    }
    self.directory = Mutex(consume directory)
  }

  deinit {
    end()
  }

  package func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(EngineError) -> Bool {
    try enter()
    defer { gate.leave() }
    var found = false
    let status = key.withUnsafeBytes { key in
      clarder_get(database, clarder_slice(key), buffer.handle, &found)
    }
    try check(status)
    return found
  }

  @discardableResult
  package func write(_ batch: inout WriteBatch, synced: Bool) throws(EngineError) -> Commit {
    try batch.checkLimits()
    try enter()
    defer { gate.leave() }
    return try writer.withLock { writer throws(EngineError) in
      try writer.commit(&batch, synced: synced)
    }
  }

  package func cursor(over range: EngineRange) throws(EngineError) -> any EngineCursor {
    try enter()
    defer { gate.leave() }
    let iterator = LevelDBIterator(over: database)
    iterators.withLock { $0[ObjectIdentifier(iterator)] = iterator }
    return LevelDBCursor(over: range, of: self, by: iterator)
  }

  package func approximateBytes(in range: EngineRange) throws(EngineError) -> UInt64 {
    try enter()
    defer { gate.leave() }
    return withSlices(of: range) { clarder_approximate_bytes(database, $0, $1) }
  }

  package func compact(_ range: EngineRange) throws(EngineError) {
    try enter()
    defer { gate.leave() }
    withSlices(of: range) { clarder_compact(database, $0, $1) }
    // LevelDB keeps the failure of a compaction for the next write.
    try writer.withLock { writer throws(EngineError) in try writer.reportFailure() }
  }

  package func property(_ name: String) throws(EngineError) -> String? {
    try enter()
    defer { gate.leave() }
    let buffer = ValueBuffer()
    guard clarder_property(database, name, buffer.handle) else { return nil }
    return buffer.withBytes { bytes in
      bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Ends the engine: waits for the calls under way, ends open cursors, frees everything.
  ///
  /// Do not call it from within a cursor's `withEntry`: it would wait for itself.
  package func close() throws(EngineError) {
    end()
  }

  /// Frees an iterator whose cursor goes away.
  func release(_ iterator: LevelDBIterator) {
    iterators.withLock { iterators in
      iterators[ObjectIdentifier(iterator)] = nil
      iterator.end(keepingEntry: false)
    }
  }

  /// The entry that an iterator stands on, or stood on when the engine was closed.
  ///
  /// Only for when the gate is closing: it ends the iterator, as ``close()`` will or has.
  func lastEntry(of iterator: LevelDBIterator) -> LevelDBIterator.Entry? {
    iterators.withLock { _ in
      iterator.end(keepingEntry: true)
      return iterator.lastEntry
    }
  }

  private func enter() throws(EngineError) {
    guard gate.enter() else { throw .closed }
  }

  private func end() {
    directory.withLock { directory in
      guard directory != nil else { return }
      gate.close()
      iterators.withLock { iterators in
        for iterator in iterators.values { iterator.end(keepingEntry: true) }
        iterators = [:]
      }
      clarder_close(database)
      directory = nil
    }
  }

  private static func open(
    _ path: String, _ options: LevelDBOptions
  ) throws(EngineError) -> OpaquePointer {
    var database: OpaquePointer?
    var spelling = path
    while true {
      let status = (options.infoLogPath ?? "/dev/null").withCString { log in
        var settings = clarder_options(
          create_if_missing: options.createIfMissing, compression: options.compression,
          reuse_logs: options.reusesLogs, filter_bits_per_key: Int32(options.filterBitsPerKey),
          max_open_files: Int32(options.maxOpenFiles), block_bytes: options.blockBytes,
          write_buffer_bytes: options.writeBufferBytes,
          block_cache_bytes: options.blockCacheBytes, max_file_bytes: options.maxFileBytes,
          info_log_path: log)
        return clarder_open(spelling, &settings, &database)
      }
      do throws(EngineError) {
        try check(status)
      } catch .locked where spelling.count < path.count + 8 {
        // We hold the guard of this directory, so LevelDB means another one: its table of open
        // databases, by path, still has one that was deleted while it was open. Spelt otherwise,
        // the path is not in the table. A lock held by another process stays held.
        spelling += "/."
        continue
      }
      if let database { return database }
    }
  }

  private func withSlices<R>(
    of range: EngineRange, _ body: (clarder_slice, UnsafePointer<clarder_slice>?) -> R
  ) -> R {
    range.lower.withUnsafeBytes { lower in
      guard let upper = range.upper else { return body(clarder_slice(lower), nil) }
      return upper.withUnsafeBytes { upper in
        withUnsafePointer(to: clarder_slice(upper)) { body(clarder_slice(lower), $0) }
      }
    }
  }
}

// @unchecked: `database` is never reassigned, LevelDB locks inside, and the gate and `writer` keep
// the two rules that it leaves to its callers. Everything else is locked here.
extension LevelDBEngine: @unchecked Sendable {}
