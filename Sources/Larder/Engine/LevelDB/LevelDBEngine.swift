import CLarder
import Dispatch
import Synchronization

/// An ordered map from bytes to bytes, kept by LevelDB in one directory.
///
/// At most one engine of all processes has a directory open. Writes survive a kill of the process;
/// writes with `synced` survive a power loss too. Releasing the last reference closes the engine; a
/// cursor holds a reference.
///
/// Inside, `database` is never freed under a call or under the iterators of live cursors, and
/// `queue` lets in one writer or one group of writers at a time.
package final class LevelDBEngine: StorageEngine {
  /// The bytes that opening set aside after a power loss; nil if there were none.
  package let recovery: Recovery?
  let cursorSliceEntries: Int
  let database: DatabaseHandle
  let queue: CommitQueue
  let writes = WriteCount()
  let options: LevelDBOptions
  /// The store's directory, its path without links.
  let path: String
  let snapshot: StoreSnapshot?
  /// Nil if no value is separated.
  let segments: SegmentFiles?
  let collection = Lock(SegmentCollection())
  /// What the last collection has left.
  let totals = Lock(SegmentTotals())
  let schedule: CollectionSchedule
  /// The thread of a collection in the background.
  let collectionThread = DispatchGroup()
  let owner = ProcessOwner()
  /// Nil once the engine is closed.
  ///
  /// Locked while the database is closed, reopened, suspended or resumed.
  let directory: Lock<StoreDirectory?>
  /// Entered by the thread that reopens the database, with `directory` locked.
  let reopening = DispatchGroup()
  let isDamageNoted = Atomic<Bool>(false)
  let statistics: StatisticsFile
  let control = ControlSocket()

  /// Opens the store in the directory at `path`, or creates it if the options allow it.
  ///
  /// - Parameters:
  ///   - path: A directory. A missing one is created, readable by its owner only; its parent must
  ///     exist.
  ///   - options: The engine's settings.
  /// - Throws: ``StoreError/invalidArgument(_:)`` for a setting out of range,
  ///   ``StoreError/locked(pid:)`` when the store is open already, by any path,
  ///   ``StoreError/incompatible(_:)`` when the directory is not a store, or a newer one,
  ///   ``StoreError/corrupt(_:)`` when the store is damaged, ``StoreError/io(_:)`` when the store
  ///   or its parent is missing and when the system refuses something, such as a thread for
  ///   compactions, and ``StoreError/diskFull``. Errors that can be found without opening LevelDB
  ///   are thrown first, before anything is changed.
  package convenience init(
    at path: String, options: LevelDBOptions = LevelDBOptions()
  ) throws(StoreError) {
    try self.init(at: path, options: options, lock: nil, of: nil)
  }

  /// Opens a store whose guard the caller holds, or the captured files of a snapshot.
  ///
  /// The engine does not release the guard. It keeps the snapshot alive.
  init(
    at path: String, options: LevelDBOptions, lock: (any FileGuard)? = nil,
    of snapshot: StoreSnapshot? = nil
  ) throws(StoreError) {
    self.snapshot = snapshot
    try options.checkRanges()
    // LevelDB has one thread for all databases of a process, which a child does not inherit.
    guard !owner.isForked || options.files.environment != nil else {
      throw .io("no store can be opened in a process that was forked from one that had opened one")
    }
    let directory = try StoreDirectory(
      at: path, createIfMissing: options.createIfMissing, files: options.files, lock: lock)
    var options = options
    try Reserve.limitSizes(of: &options, in: directory.path)
    var reserve = try Reserve(in: directory.path, options: options)
    let database: OpaquePointer
    (database, recovery) = try openDatabase(at: directory.path, options, lending: &reserve)
    let logs = LogFiles(
      in: directory.path, under: directory.lock, files: options.files,
      bufferBytes: options.writeBufferBytes)
    let segments = options.separation.map {
      SegmentFiles(in: directory.path, files: options.files, format: $0)
    }
    self.segments = segments
    let numbers = try segments?.numbers() ?? []
    if options.readOnlyCause == nil {
      StoreDirectory.correctMarker(
        in: directory.path, hasSegments: !numbers.isEmpty, options.files)
    }
    schedule = CollectionSchedule(
      segmentBytes: options.segmentBytes, segments: numbers.count)
    do throws(StoreError) {
      let (segmentBytes, syncsAhead) = (options.segmentBytes, options.syncsInBackground)
      let writer = try LevelDBWriter(
        of: database, logs: logs, reserve: reserve,
        segments: segments.map {
          SegmentWriter(
            with: $0, after: numbers.last ?? 0, segmentBytes: segmentBytes, syncsAhead: syncsAhead)
        }, counting: writes, readOnlyCause: options.readOnlyCause)
      queue = CommitQueue(writer)
    } catch {
      clarder_close(database)
      throw error
    }
    self.database = DatabaseHandle(database)
    cursorSliceEntries = options.cursorSliceEntries
    self.options = options
    self.path = directory.path
    statistics = StatisticsFile(
      in: directory.path, under: directory.lock, files: options.files)
    self.directory = Lock(consume directory)
  }

  deinit {
    end()
  }

  package func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    try enter()
    defer { leave() }
    do throws(StoreError) {
      return try read(key, into: &buffer)
    } catch {
      throw noted(error)
    }
  }

  package func getHead(
    _ key: RawSpan, into buffer: inout ValueBuffer
  ) throws(StoreError) -> Int? {
    try enter()
    defer { leave() }
    do throws(StoreError) {
      guard try buffer.read(key, from: database.pointer) else { return nil }
      return segments?.removePayload(of: &buffer, under: key) ?? buffer.count
    } catch {
      throw noted(error)
    }
  }

  /// Reads the value under `key` with its payload, between ``enter()`` and ``leave()``.
  func read(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    var missing: UInt32?
    while try buffer.read(key, from: database.pointer) {
      guard case .missing(let segment)? = try segments?.resolve(&buffer, under: key) else {
        return true
      }
      // The row was replaced, and its segment deleted, after the row was read. But if the row still
      // names the segment, the payload is lost.
      if segment == missing {
        segments?.removePayload(of: &buffer, under: key)
        return true
      }
      missing = segment
    }
    return false
  }

  @discardableResult
  package func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    try batch.checkLimits()
    try owner.require()
    do throws(StoreError) {
      let commit = try commitOrReopen(&batch, synced: synced)
      if let format = options.separation, options.collectsInBackground {
        collectIfDue(
          mayWait: batch.rows.contains { $0.payloadCount >= format.thresholdBytes ?? .max })
      }
      return commit
    } catch {
      return try commitAgain(&batch, synced: synced, after: error)
    }
  }

  /// The number of writers that wait for the current one.
  package var writersInLine: Int { queue.writersInLine }

  package var writeCount: Int? { writes.now }

  func commit(
    _ batch: inout WriteBatch, synced: Bool
  ) throws(StoreError) -> Commit {
    try enter(toFreeRoom: batch.freesRoom)
    defer { leave() }
    do throws(StoreError) {
      return try queue.commit(&batch, synced: synced)
    } catch {
      throw noted(error)
    }
  }

  package func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    try cursor(over: range, lending: .values)
  }

  package func headCursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    try cursor(over: range, lending: .heads)
  }

  /// A cursor that lends the values in this form.
  func cursor(
    over range: EngineRange, lending form: LevelDBCursor.Form
  ) throws(StoreError) -> LevelDBCursor {
    try enter()
    defer { leave() }
    return LevelDBCursor(over: range, of: self, by: database.makeIterator(), lending: form)
  }

  package func approximateBytes(in range: EngineRange) throws(StoreError) -> UInt64 {
    try enter()
    defer { leave() }
    return range.withSlices { clarder_approximate_bytes(database.pointer, $0, $1) }
  }

  package func storedBytes() throws(StoreError) -> Int {
    var sum = 0
    for name in try options.files.names(in: path) where name != Reserve.name {
      sum += try options.files.byteCount(of: "\(path)/\(name)") ?? 0
    }
    return sum
  }

  package func bytesHeldByCursors() throws(StoreError) -> Int {
    let condemned = collection.withLock { Set($0.condemned.map(\.segment)) }
    var (segments, tables) = (0, 0)
    for name in try options.files.names(in: path) {
      switch DataFile(name) {
      case .table:
        tables += try options.files.byteCount(of: "\(path)/\(name)") ?? 0
      case .segment(let number) where condemned.contains(number):
        segments += try options.files.byteCount(of: "\(path)/\(name)") ?? 0
      default: break
      }
    }
    let current = Int(clamping: try approximateBytes(in: EngineRange()))
    return segments + max(0, tables - current)
  }

  package func compact(_ range: EngineRange) throws(StoreError) {
    try enter()
    defer { leave() }
    // A compaction of LevelDB begins with a new log. The old log must not be empty: recovery takes
    // an empty log that is not the newest for one whose contents were lost.
    try queue.withWriter { writer throws(StoreError) in try writer.beginCompaction() }
    range.withSlices { clarder_compact(database.pointer, $0, $1) }
    // LevelDB reports the failure of a compaction to the next write.
    do throws(StoreError) {
      try queue.withWriter { writer throws(StoreError) in try writer.endCompaction() }
    } catch {
      throw noted(error)
    }
  }

  package func property(_ name: String) throws(StoreError) -> String? {
    try enter()
    defer { leave() }
    let buffer = ValueBuffer()
    guard clarder_property(database.pointer, name, buffer.memory.handle) else { return nil }
    return buffer.withBytes { bytes in
      bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Skips all commit sequences up to `sequence`, which copied records carry already.
  package func skipSequences(through sequence: UInt64) {
    queue.withWriter { $0.skipSequences(through: sequence) }
  }

  package func join(_ participant: any CommitParticipant) {
    queue.withWriter { $0.participant = participant }
  }

  package func checkOpen() throws(StoreError) {
    try enter()
    leave()
  }

  package func publish(statistics bytes: [UInt8]) throws(StoreError) {
    try owner.require()
    try statistics.replace(with: bytes)
  }

  package func acceptCommands(for service: ControlService) throws(StoreError) {
    try owner.require()
    try directory.withLock { directory throws(StoreError) in
      guard let path = directory?.path else { throw .closed }
      try control.begin(in: path, for: service)
    }
  }

  package func close() throws(StoreError) {
    end()
  }

  /// Enters the database, for a call that uses it.
  ///
  /// Waits while another thread reopens it, and reopens it if an earlier attempt failed.
  ///
  /// The caller must not have entered already, nor hold a lock that a ``CommitParticipant`` needs.
  func enter(toFreeRoom: @autoclosure () -> Bool = false) throws(StoreError) {
    try owner.require()
    while !database.enterIfUp() {
      switch database.enter() {
      case .up: return
      case .down: break
      case .suspended: throw .suspended
      case .closed: throw .closed
      }
      let tried: Void? = try directory.withLockIfAvailable { directory throws(StoreError) in
        try bringUp(directory?.path, forFreeing: toFreeRoom())
      }
      guard tried == nil else { continue }
      // Not for the lock: a thread that closes the engine holds it, and waits for collections.
      try schedule.checkRunning()
      reopening.wait()
    }
  }

  /// Enters the database if it is there.
  func enterIfOpen() -> Bool { database.enterIfUp() }

  /// Every ``enter()``, and every ``enterIfOpen()`` that returned true, is followed by one.
  func leave() { database.leave() }

  package var isUp: Bool { database.isOpen && owner.isCurrent }

  private func end() {
    // A child process leaves the parent's files, and its own copy of the memory, as they are.
    guard owner.isCurrent else { return }
    directory.withLock { directory in
      guard let path = directory?.path else { return }
      // Another process may have the directory of a suspended store.
      if database.isSuspended {
        database.close(as: .closed)
      } else {
        schedule.stop(because: .closed)
        closeDatabase(in: path, as: .closed)
      }
      directory = nil
    }
  }

  /// Ends everything that uses the directory, which is locked, and closes the database.
  ///
  /// Collections were told to end.
  func closeDatabase(in path: String, as condition: DatabaseHandle.Condition) {
    control.end()
    database.close(as: condition) { isUp in
      queue.withWriter { $0.sealSegment(noting: isUp) }
    }
    // A collection may be about to delete a file, and a backup be copying some.
    collection.withLock { _ in }
    segments?.closeAll()
    restoreReserve(in: path)
    statistics.end()
  }
}

// @unchecked: LevelDB locks inside; `database` and `queue` keep the two rules that it leaves to its
// callers. All other state has a lock here.
extension LevelDBEngine: @unchecked Sendable {}
