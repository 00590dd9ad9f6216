import CLarderLevelDB
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// An ordered map from bytes to bytes, kept by LevelDB in one directory.
///
/// One engine has a directory open at a time, in all processes. What a process wrote survives its
/// being killed; what it wrote with `synced` survives power loss too. Close it, or let the last
/// reference go, which closes it: a cursor keeps its engine alive.
///
/// Inside: `gate` keeps the database from being freed under a call; `queue` lets writers in one
/// after another, or in groups; `iterators` are those of live cursors, for ``close()`` to free
/// before the database.
package final class LevelDBEngine: StorageEngine {
  /// What opening had to set aside; nil when nothing.
  package let recovery: Recovery?
  let gate = Gate()
  let cursorSliceEntries: Int
  private let handle: Atomic<OpaquePointer>
  let queue: CommitQueue
  private let writes = WriteCount()
  private let iterators = Mutex<[ObjectIdentifier: LevelDBIterator]>([:])
  let options: LevelDBOptions
  /// The store's directory, its path without links.
  let path: String
  private let snapshot: StoreSnapshot?
  // The process that opened the store: no other may use it.
  private let owner: (process: Int32, forks: Int)
  // Nil once the engine is closed. Held while the database is closed or opened anew.
  private let directory: Mutex<StoreDirectory?>
  // Why there is no database, while the engine is open.
  private let downCause = Mutex<String?>(nil)
  private let reopened = Mutex<(@Sendable (Reader) -> Bool)?>(nil)
  let isDamageNoted = Atomic<Bool>(false)

  /// What is read between a database's being opened anew and the first call that sees it.
  package typealias Reader = (_ key: [UInt8]) throws(EngineError) -> [UInt8]?

  /// LevelDB's database; only within the gate.
  var database: OpaquePointer { handle.load(ordering: .relaxed) }

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
  ///   missing store or parent and for what the system refuses, such as a thread for compactions,
  ///   and ``EngineError/diskFull``. What
  ///   can be seen without opening LevelDB is refused first, and then nothing was changed.
  package convenience init(
    at path: String, options: LevelDBOptions = LevelDBOptions()
  ) throws(EngineError) {
    try self.init(at: path, options: options, lock: nil, of: nil)
  }

  /// Opens a store whose guard the caller holds, or the captured files of a snapshot.
  ///
  /// The guard is not given up with the engine. The snapshot outlives it.
  init(
    at path: String, options: LevelDBOptions, lock: (any FileGuard)? = nil,
    of snapshot: StoreSnapshot? = nil
  ) throws(EngineError) {
    self.snapshot = snapshot
    try options.checkRanges()
    owner = (getpid(), ForkCount.watch())
    // LevelDB has one thread for all databases of a process, which a child does not inherit.
    guard owner.forks == 0 || options.files.environment != nil else {
      throw .io("no store can be opened in a process that was forked from one that had opened one")
    }
    let directory = try StoreDirectory(
      at: path, createIfMissing: options.createIfMissing, files: options.files, lock: lock)
    var options = options
    options.writeBufferBytes = try Reserve.bufferBytes(
      atMost: options.writeBufferBytes, in: directory.path, files: options.files)
    var reserve = try Reserve(in: directory.path, options: options)
    try reserve.lendToOpen()
    recovery = try recover(directory: directory.path, files: options.files)
    if reserve.isLent {
      try UnnamedTables(in: directory.path, files: options.files).remove()
    }
    let database = try LevelDBEngine.open(directory.path, options)
    let logs = LogFiles(
      in: directory.path, under: directory.lock, files: options.files,
      bufferBytes: options.writeBufferBytes)
    do throws(EngineError) {
      let writer = try LevelDBWriter(
        of: database, logs: logs, reserve: reserve, counting: writes,
        readOnlyCause: options.readOnlyCause)
      queue = CommitQueue(writer)
    } catch {
      clarder_close(database)
      throw error
    }
    handle = Atomic(database)
    cursorSliceEntries = options.cursorSliceEntries
    self.options = options
    self.path = directory.path
    self.directory = Mutex(consume directory)
  }

  deinit {
    end()
  }

  package func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(EngineError) -> Bool {
    try enter()
    defer { gate.leave() }
    do throws(EngineError) {
      return try buffer.read(key, from: database)
    } catch {
      throw noted(error)
    }
  }

  @discardableResult
  package func write(_ batch: inout WriteBatch, synced: Bool) throws(EngineError) -> Commit {
    try batch.checkLimits()
    try requireOwner()
    do throws(EngineError) {
      return try commitOrReopen(&batch, synced: synced)
    } catch {
      guard batch.freesRoom else { throw error }
      switch error {
      case .diskFull: return try retry(&batch, synced: synced, after: error)
      case .corrupt, .writesDisabled:
        guard isDamageNoted.load(ordering: .relaxed) else { throw error }
        return try retry(&batch, synced: synced, after: error)
      default: throw error
      }
    }
  }

  /// Writes a batch that frees room, though the disk is full, or compactions fail at a damaged
  /// block.
  ///
  /// Room is kept for it. After a compaction that failed, LevelDB refuses writes; opened anew, it
  /// accepts them until the next one fails, or takes the room.
  ///
  /// - Throws: `error`, which it failed with first: what became of that attempt is not known.
  private func retry(
    _ batch: inout WriteBatch, synced: Bool, after error: EngineError
  ) throws(EngineError) -> Commit {
    for _ in 0..<Self.triesToFreeRoom {
      do throws(EngineError) {
        return try commitOrReopen(&batch, synced: synced)
      } catch .diskFull, .corrupt, .writesDisabled {
        continue
      }
    }
    throw error
  }

  private static let triesToFreeRoom = 5

  private func commitOrReopen(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(EngineError) -> Commit {
    do throws(EngineError) {
      return try commit(&batch, synced: synced)
    } catch {
      let cause: String
      if case .writesDisabled(let reason) = error {
        cause = reason
      } else if let reason = downCause.withLock({ $0 }) {
        cause = reason
      } else {
        throw error
      }
      guard try reopen(because: cause, forFreeing: batch.freesRoom) else { throw error }
    }
    return try commit(&batch, synced: synced)
  }

  /// How many writers wait for one that is at work.
  package var writersInLine: Int { queue.writersInLine }

  package var writeCount: Int? { writes.now }

  private func commit(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(EngineError) -> Commit {
    try enter()
    defer { gate.leave() }
    do throws(EngineError) {
      return try queue.commit(&batch, synced: synced)
    } catch {
      throw noted(error)
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
    // LevelDB begins with a new log. A log that is not the newest is never empty: recovery would
    // take it for one whose contents were lost.
    try queue.withWriter { writer throws(EngineError) in try writer.reportFailure() }
    withSlices(of: range) { clarder_compact(database, $0, $1) }
    // LevelDB keeps the failure of a compaction for the next write.
    do throws(EngineError) {
      try queue.withWriter { writer throws(EngineError) in try writer.reportFailure() }
    } catch {
      throw noted(error)
    }
  }

  package func property(_ name: String) throws(EngineError) -> String? {
    try enter()
    defer { gate.leave() }
    let buffer = ValueBuffer()
    guard clarder_property(database, name, buffer.memory.handle) else { return nil }
    return buffer.withBytes { bytes in
      bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Leaves out all commit sequences up to `sequence`: records that carry them were copied here.
  package func skipSequences(through sequence: UInt64) {
    queue.withWriter { $0.skipSequences(through: sequence) }
  }

  package func measure(by meter: any CommitMeter) { queue.withWriter { $0.meter = meter } }

  package func checkOpen() throws(EngineError) {
    try enter()
    gate.leave()
  }

  /// Ends the engine: waits for the calls under way, ends open cursors, frees everything.
  package func close() throws(EngineError) {
    end()
  }

  /// Frees an iterator whose cursor goes away.
  func release(_ iterator: LevelDBIterator) {
    guard isOwner else { return }
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

  /// Goes in by the gate.
  ///
  /// Opens the database anew if an earlier attempt failed. It does not wait for one that is under
  /// way.
  func enter() throws(EngineError) {
    try requireOwner()
    guard !gate.enter() else { return }
    guard let cause = downCause.withLock({ $0 }) else { throw .closed }
    let isUp = try directory.withLockIfAvailable { directory throws(EngineError) in
      if let path = directory?.path {
        try reopen(path, because: cause, forFreeing: false)
      } else {
        false
      }
    }
    guard isUp != nil, gate.enter() else {
      throw .io("the store is being opened anew after a failure: \(cause)")
    }
  }

  /// Whether a call may go on that needs nothing of the database.
  var isUp: Bool { gate.isOpen && isOwner }

  private var isOwner: Bool { ForkCount.current == owner.forks }

  /// Throws in a child process of the one that opened the store.
  ///
  /// It comes before every lock: in the child, nobody may be left to give one up.
  private func requireOwner() throws(EngineError) {
    guard isOwner else { throw .locked(pid: owner.process) }
  }

  private func end() {
    // What is the parent's stays as it is; the child's copy in memory is left alone.
    guard isOwner else { return }
    directory.withLock { directory in
      guard directory != nil else { return }
      let isDown = downCause.withLock { cause in
        defer { cause = nil }
        return cause != nil
      }
      gate.close()
      endIterators()
      iterators.withLock { $0 = [:] }
      if !isDown { clarder_close(database) }
      directory = nil
    }
  }

  private func endIterators() {
    iterators.withLock { for iterator in $0.values { iterator.end(keepingEntry: true) } }
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
          info_log_path: log, env: options.files.environment)
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

// MARK: - After a failure in the background

extension LevelDBEngine {
  /// Has `body` called whenever the database was opened anew, before any other call sees it.
  ///
  /// A write that failed before may have taken effect by that. `body` answers whether batches that
  /// were made before are still right; if not, the write that had it opened throws.
  package func whenReopened(_ body: @escaping @Sendable (Reader) -> Bool) {
    reopened.withLock { $0 = body }
  }

  /// Closes the database and opens it again, if that is what writing waits for.
  ///
  /// Other calls throw meanwhile; cursors go on behind the entry they stand on. When it cannot be
  /// opened again, the next call tries it.
  ///
  /// - Returns: Whether the write may be tried again. False when there is no need to open it anew,
  ///   when the disk does not take what is written yet, so that the database stays open for
  ///   reading, or when the write stands on what is different now.
  private func reopen(
    because cause: String, forFreeing: Bool
  ) throws(EngineError) -> Bool {
    try directory.withLock { directory throws(EngineError) in
      guard let path = directory?.path else { throw .closed }
      return try reopen(path, because: cause, forFreeing: forFreeing)
    }
  }

  // With `directory` locked.
  private func reopen(
    _ path: String, because cause: String, forFreeing: Bool
  ) throws(EngineError) -> Bool {
    guard queue.withWriter({ $0.needsReopening }) else { return false }
    // What a failed compaction has left can take all room of a full disk.
    var abandonedBytes = 0
    if !queue.withWriter({ $0.seemsToHaveRoom(forFreeing: forFreeing) }) {
      guard forFreeing else { return false }
      let bytes = try UnnamedTables(in: path, files: options.files).byteCount
      guard bytes > 0, queue.withWriter({ $0.seemsToHaveRoom(forFreeing: true, after: bytes) })
      else { return false }
      abandonedBytes = bytes
    }
    guard abandonedBytes > 0 || canWrite(in: path) else { return false }
    let wasDown = downCause.withLock { old in
      defer { old = cause }
      return old != nil
    }
    if !wasDown {
      gate.close()
      endIterators()
      clarder_close(database)
    }
    // Only now: until it was closed, the database may have been writing one of them.
    if abandonedBytes > 0 { try UnnamedTables(in: path, files: options.files).remove() }
    _ = try recover(directory: path, files: options.files)
    var options = options
    options.createIfMissing = false
    let database = try LevelDBEngine.open(path, options)
    handle.store(database, ordering: .releasing)
    queue.withWriter { $0.goOn(with: database) }
    let read: Reader = { key throws(EngineError) in
      try ValueBuffer.value(under: key, of: database)
    }
    let isBatchRight = reopened.withLock { $0 }?(read) ?? true
    downCause.withLock { $0 = nil }
    gate.open()
    return isBatchRight
  }

  /// Whether the disk takes a small file: what opening a database begins with.
  private func canWrite(in path: String) -> Bool {
    let probe = "\(path)/LARDER.probe"
    do throws(EngineError) {
      try options.files.replace(probe, with: Array(repeating: 0, count: 4096))
      try options.files.synchronizeDirectory(path)
      try options.files.remove(probe)
      return true
    } catch {
      return false
    }
  }
}

// @unchecked: LevelDB locks inside, and the gate and `queue` keep the two rules that it leaves to
// its callers. Everything else is locked here.
extension LevelDBEngine: @unchecked Sendable {}
