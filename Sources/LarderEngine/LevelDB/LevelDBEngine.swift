import CLarderLevelDB
import Synchronization

/// An ordered map from bytes to bytes, kept by LevelDB in one directory.
///
/// One engine has a directory open at a time, in all processes. What a process wrote survives its
/// being killed; what it wrote with `synced` survives power loss too. Close it, or let the last
/// reference go, which closes it: a cursor keeps its engine alive.
///
/// Inside: `database` is not freed under a call, or under the iterators of live cursors; `queue`
/// lets writers in one after another, or in groups.
package final class LevelDBEngine: StorageEngine {
  /// What opening had to set aside; nil when nothing.
  package let recovery: Recovery?
  let cursorSliceEntries: Int
  let database: DatabaseHandle
  let queue: CommitQueue
  private let writes = WriteCount()
  let options: LevelDBOptions
  /// The store's directory, its path without links.
  let path: String
  private let snapshot: StoreSnapshot?
  private let owner = ProcessOwner()
  /// Nil once the engine is closed.
  ///
  /// Locked while the database is closed or reopened.
  let directory: Mutex<StoreDirectory?>
  let reopened = Mutex<(@Sendable (EngineReader) -> Bool)?>(nil)
  let isDamageNoted = Atomic<Bool>(false)

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
    // LevelDB has one thread for all databases of a process, which a child does not inherit.
    guard !owner.isForked || options.files.environment != nil else {
      throw .io("no store can be opened in a process that was forked from one that had opened one")
    }
    let directory = try StoreDirectory(
      at: path, createIfMissing: options.createIfMissing, files: options.files, lock: lock)
    var options = options
    options.writeBufferBytes = try Reserve.bufferBytes(
      atMost: options.writeBufferBytes, in: directory.path, files: options.files)
    var reserve = try Reserve(in: directory.path, options: options)
    try reserve.lendToOpen()
    recovery = try recover(
      directory: directory.path, files: options.files, stamp: options.stamp)
    if reserve.isLent {
      try UnnamedTables(in: directory.path, files: options.files).remove()
    }
    let database = try openDatabase(at: directory.path, options)
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
    self.database = DatabaseHandle(database)
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
    defer { leave() }
    do throws(EngineError) {
      return try buffer.read(key, from: database.pointer)
    } catch {
      throw noted(error)
    }
  }

  @discardableResult
  package func write(_ batch: inout WriteBatch, synced: Bool) throws(EngineError) -> Commit {
    try batch.checkLimits()
    try owner.require()
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

  /// How many writers wait for one that is at work.
  package var writersInLine: Int { queue.writersInLine }

  package var writeCount: Int? { writes.now }

  func commit(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(EngineError) -> Commit {
    try enter()
    defer { leave() }
    do throws(EngineError) {
      return try queue.commit(&batch, synced: synced)
    } catch {
      throw noted(error)
    }
  }

  package func cursor(over range: EngineRange) throws(EngineError) -> any EngineCursor {
    try enter()
    defer { leave() }
    return LevelDBCursor(over: range, of: self, by: database.makeIterator())
  }

  package func approximateBytes(in range: EngineRange) throws(EngineError) -> UInt64 {
    try enter()
    defer { leave() }
    return range.withSlices { clarder_approximate_bytes(database.pointer, $0, $1) }
  }

  package func compact(_ range: EngineRange) throws(EngineError) {
    try enter()
    defer { leave() }
    // LevelDB begins with a new log. A log that is not the newest is never empty: recovery would
    // take it for one whose contents were lost.
    try queue.withWriter { writer throws(EngineError) in try writer.reportFailure() }
    range.withSlices { clarder_compact(database.pointer, $0, $1) }
    // LevelDB keeps the failure of a compaction for the next write.
    do throws(EngineError) {
      try queue.withWriter { writer throws(EngineError) in try writer.reportFailure() }
    } catch {
      throw noted(error)
    }
  }

  package func property(_ name: String) throws(EngineError) -> String? {
    try enter()
    defer { leave() }
    let buffer = ValueBuffer()
    guard clarder_property(database.pointer, name, buffer.memory.handle) else { return nil }
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
    leave()
  }

  /// Ends the engine: waits for the calls under way, ends open cursors, frees everything.
  package func close() throws(EngineError) {
    end()
  }

  /// Frees an iterator whose cursor ends.
  func release(_ iterator: LevelDBIterator) {
    if owner.isCurrent { database.release(iterator) }
  }

  /// Enters the database, for a call that uses it.
  ///
  /// Reopens it if an earlier attempt failed. It does not wait for an attempt under way.
  func enter() throws(EngineError) {
    try owner.require()
    guard !database.enter() else { return }
    guard let cause = database.downCause else { throw .closed }
    let isUp = try directory.withLockIfAvailable { directory throws(EngineError) in
      if let path = directory?.path {
        try reopen(path, because: cause, forFreeing: false)
      } else {
        false
      }
    }
    guard isUp != nil, database.enter() else {
      throw .io("the store is being opened anew after a failure: \(cause)")
    }
  }

  /// Enters the database if it is there.
  func enterIfOpen() -> Bool { database.enter() }

  /// Every ``enter()``, and every ``enterIfOpen()`` that returned true, is followed by one.
  func leave() { database.leave() }

  /// Whether a call may continue that needs nothing of the database.
  var isUp: Bool { database.isOpen && owner.isCurrent }

  private func end() {
    // What is the parent's stays as it is; the child's copy in memory is left alone.
    guard owner.isCurrent else { return }
    directory.withLock { directory in
      guard directory != nil else { return }
      database.close()
      directory = nil
    }
  }
}

// @unchecked: LevelDB locks inside, and `database` and `queue` keep the two rules that it leaves to
// its callers. Everything else is locked here.
extension LevelDBEngine: @unchecked Sendable {}
