/// An ordered map from bytes to bytes, which a store is built on.
///
/// Keys are ordered by their bytes, as unsigned numbers, shorter first. All engines keep the same
/// contract, and one parametrised suite tests them.
///
/// - Threads: every method may be called from any thread at once. A cursor belongs to one thread.
/// - Atomicity: a batch is applied whole or not at all, and batches are applied one after another,
///   in the order of their commit sequences.
/// - After ``close()`` every method, and every cursor that is still open, throws
///   ``StoreError/closed``.
package protocol StorageEngine: AnyObject, Sendable {
  /// Reads the value under `key` into `buffer`, replacing what the buffer held.
  ///
  /// - Returns: False when the key is absent; the buffer is then empty.
  /// - Complexity: One point lookup. No copy beyond the engine's own into the buffer.
  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool

  /// Reads the value under `key` into `buffer`, without its payload if that is in a segment.
  ///
  /// A value without its payload does not match its stamp.
  ///
  /// - Returns: The size of the whole value; nil when the key is absent.
  /// - Complexity: One point lookup.
  func getHead(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Int?

  /// Applies a batch atomically, gives it the next commit sequence, and fills in its stamps.
  ///
  /// Conditions are checked against the state before the batch. Rows whose condition fails are
  /// skipped, the others are applied. A batch without an applied row writes nothing.
  ///
  /// - Parameters:
  ///   - batch: The rows and their conditions.
  ///   - synced: Whether the batch, and everything committed before it, must have reached the
  ///     device when this returns.
  /// - Returns: The sequence, and the conditions that failed.
  /// - Throws: ``StoreError/diskFull`` or ``StoreError/io(_:)`` when the write failed: whether it
  ///   took effect is unknown until another write succeeds or the store is opened again. Nothing
  ///   was written in the other cases: ``StoreError/invalidArgument(_:)`` when the batch is over
  ///   ``EngineLimits``, ``StoreError/writesDisabled(cause:)`` when an earlier write failed and
  ///   its cause persists, ``StoreError/budgetExceeded(bytes:budget:)`` when the participant
  ///   refuses the batch.
  /// - Complexity: One append to the log, and one fsync if `synced`. One lookup for each row that
  ///   is counted, and one for each condition, unless nothing was written since the batch's
  ///   ``WriteBatch/writeCountBeforeReading``.
  @discardableResult
  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit

  /// The number of writes so far; nil if the engine does not count them.
  ///
  /// While it stays the same, ``get(_:into:)`` reads the same values.
  var writeCount: Int? { get }

  /// Returns a cursor over the keys in `range`, which stands before the first of them.
  func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor

  /// Returns such a cursor that does not read payloads that are in segments.
  ///
  /// It lends values as ``getHead(_:into:)`` returns them.
  func headCursor(over range: EngineRange) throws(StoreError) -> any EngineCursor

  /// Roughly the number of bytes that the entries of `range` take in files.
  ///
  /// Entries that are only in memory are not counted.
  func approximateBytes(in range: EngineRange) throws(StoreError) -> UInt64

  /// The size of the files, without the reserve; 0 for an engine without files.
  func storedBytes() throws(StoreError) -> Int

  /// The size of the files that are there for open cursors alone; 0 for an engine without files.
  ///
  /// They are deleted some time after those cursors are closed. Evicting entries does not free
  /// them.
  func bytesHeldByCursors() throws(StoreError) -> Int

  /// Rewrites the files that hold `range`, without deleted and overwritten entries.
  func compact(_ range: EngineRange) throws(StoreError)

  /// The engine's figure with a LevelDB name, such as `leveldb.stats`; nil if it has none.
  func property(_ name: String) throws(StoreError) -> String?

  /// Makes a backup in a directory that is missing or empty, while others read and write.
  ///
  /// It holds everything that was acknowledged before the call, and the commits after that up to
  /// some moment.
  ///
  /// - Parameters:
  ///   - target: The directory of the backup. Its parent must exist, and it must lie outside the
  ///     store.
  ///   - date: The date in the backup's manifest, in seconds since 2001-01-01 00:00 UTC.
  /// - Throws: ``StoreError/invalidArgument(_:)`` for `target`, and for an engine without files;
  ///   ``StoreError/locked(pid:)`` for `target`; ``StoreError/corrupt(_:)`` when the store's
  ///   MANIFEST or a log is damaged, or a file is missing; ``StoreError/io(_:)``,
  ///   ``StoreError/diskFull``, ``StoreError/closed``. `target` is then as it was before.
  func backup(to target: String, date: Double) throws(StoreError)

  /// Makes the store one that may have sealed records, which versions of this library that do not
  /// know them refuse; an engine in memory does nothing.
  func markSealed() throws(StoreError)

  /// Whether ``markSealed()`` was called, at any time.
  func isMarkedSealed() throws(StoreError) -> Bool

  /// Replaces the copy of the data keys in the store's directory, synced; an engine in memory does
  /// nothing.
  func keep(keys: [UInt8]) throws(StoreError)

  /// What ``keep(keys:)`` has written last; nil if there is no such file.
  func keptKeys() throws(StoreError) -> [UInt8]?

  /// Lets `participant` take part in all commits from now on, in place of an earlier one.
  ///
  /// The engine holds it strongly.
  func join(_ participant: any CommitParticipant)

  /// Throws if the engine is closed, or belongs to another process, as every call does.
  func checkOpen() throws(StoreError)

  /// Whether a call would neither throw for these reasons nor wait: the database is open.
  ///
  /// It takes no lock.
  var isUp: Bool { get }

  /// Gives back the room of values that were replaced or removed, where LevelDB does not do that.
  ///
  /// `proceed` is called with the bytes that were copied so far and the bytes that are to be
  /// copied; if it returns false, the rest is left.
  func collectSegments(
    _ effort: CollectionEffort, while proceed: (_ copied: Int, _ total: Int) -> Bool
  ) throws(StoreError)

  /// Does the same on another thread, soon.
  func collectSegmentsSoon()

  /// What was written to segments, and given back, since the engine was opened.
  var segmentTotals: SegmentTotals { get }

  /// Replaces the file ``StatisticsFile`` in the store's directory; an engine in memory does
  /// nothing.
  ///
  /// It waits for no other call, and does nothing once the engine is closed.
  ///
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/diskFull``: the file is then as it was before.
  func publish(statistics bytes: [UInt8]) throws(StoreError)

  /// Accepts commands over a ``ControlSocket`` in the store's directory, until the engine is
  /// closed; an engine in memory does nothing.
  ///
  /// While the engine is suspended, the socket is not there.
  ///
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/diskFull``: nobody listens then.
  func acceptCommands(for service: ControlService) throws(StoreError)

  /// Waits until no work of the engine's own is under way in the background.
  func waitForBackgroundWork()

  /// Ends the engine's own work in the background, and waits for its end.
  ///
  /// Such work may hold the engine, and so keep it open.
  func endBackgroundWork()

  /// Waits for the calls under way, and lets other processes open the store.
  ///
  /// Until ``resume()``, every call but ``close()`` throws ``StoreError/suspended``; cursors then
  /// continue after their entry. Suspending a suspended engine does nothing.
  ///
  /// - Throws: ``StoreError/closed``, ``StoreError/locked(pid:)`` in a forked child process.
  func suspend() throws(StoreError)

  /// Lets calls in again; does nothing to an engine that is not suspended.
  ///
  /// - Throws: ``StoreError/locked(pid:)`` if the store is open elsewhere,
  ///   ``StoreError/changedMeanwhile`` if it was, ``StoreError/io(_:)``, ``StoreError/diskFull``,
  ///   ``StoreError/corrupt(_:)``, ``StoreError/closed``. It then stays suspended.
  func resume() throws(StoreError)

  /// Waits for the calls under way, ends open cursors, and frees everything.
  ///
  /// Closing a closed engine does nothing.
  func close() throws(StoreError)
}

// MARK: - Engines in memory

extension StorageEngine {
  package var writeCount: Int? { nil }

  package var isUp: Bool { true }

  package func storedBytes() throws(StoreError) -> Int { 0 }

  package func bytesHeldByCursors() throws(StoreError) -> Int { 0 }

  package func getHead(
    _ key: RawSpan, into buffer: inout ValueBuffer
  ) throws(StoreError) -> Int? {
    try get(key, into: &buffer) ? buffer.count : nil
  }

  package func headCursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    try cursor(over: range)
  }

  package func collectSegments(
    _ effort: CollectionEffort, while proceed: (_ copied: Int, _ total: Int) -> Bool
  ) throws(StoreError) {}

  package func collectSegmentsSoon() {}

  package var segmentTotals: SegmentTotals { SegmentTotals() }

  package func publish(statistics bytes: [UInt8]) throws(StoreError) {}

  package func acceptCommands(for service: ControlService) throws(StoreError) {}

  package func markSealed() throws(StoreError) {}

  package func isMarkedSealed() throws(StoreError) -> Bool { false }

  package func keep(keys: [UInt8]) throws(StoreError) {}

  package func keptKeys() throws(StoreError) -> [UInt8]? { nil }

  package func waitForBackgroundWork() {}

  package func endBackgroundWork() {}

  package func backup(to target: String, date: Double) throws(StoreError) {
    throw .invalidArgument("a store in memory has no files to make a backup of")
  }
}

// MARK: - Shorthands

extension StorageEngine {
  /// Gives back the room of values that were replaced or removed; see
  /// ``collectSegments(_:while:)``.
  package func collectSegments(_ effort: CollectionEffort = .routine) throws(StoreError) {
    try collectSegments(effort) { _, _ in true }
  }

  /// Waits until everything that was committed before is on the device.
  ///
  /// - Complexity: One append and one fsync, shared with concurrent callers; one or two fsyncs more
  ///   after LevelDB has started a new log.
  package func flush() throws(StoreError) {
    var nothing = WriteBatch()
    try write(&nothing, synced: true)
  }

  /// Reads the value under `key` into an array of its own, or nil when it is absent.
  package func get(_ key: RawSpan) throws(StoreError) -> [UInt8]? {
    var buffer = ValueBuffer()
    guard try get(key, into: &buffer) else { return nil }
    return buffer.withBytes { [UInt8]($0) }
  }
}

/// A position in an engine's keys.
///
/// It belongs to one thread.
///
/// A new cursor stands before the first key of its range, and ``seek(to:)`` puts it between two
/// keys. It reads a consistent state for one slice of at most 100,000 steps or 10 seconds, and then
/// continues from the same position in a newer state: LevelDB iterators pin files and memory.
package protocol EngineCursor: AnyObject {
  /// Moves to the next entry, or returns false at the end of the range.
  ///
  /// - Throws: ``StoreError/corrupt(_:)`` at the end of the range when a part of it could not be
  ///   read; everything readable has then been visited. ``StoreError/closed`` after a close.
  func next() throws(StoreError) -> Bool

  /// Moves to the previous entry, or returns false at the start of the range.
  ///
  /// Throws as ``next()``.
  func previous() throws(StoreError) -> Bool

  /// Whether everything that the scan has visited or read ahead so far could be read.
  ///
  /// If false, the scan ends with an error.
  var isComplete: Bool { get }

  /// Puts the cursor just before the first key that is `key` or greater, within the range.
  func seek(to key: RawSpan) throws(StoreError)

  /// Puts the cursor behind the last key of the range, to which ``previous()`` then moves.
  func seekToEnd() throws(StoreError)

  /// Makes the next move start from the same place in the store's current state.
  ///
  /// The files of the earlier state may be deleted then. Until the move, the cursor stands on no
  /// entry.
  func renew() throws(StoreError)

  /// Lends the key and value of the cursor's entry for as long as the call.
  ///
  /// The cursor must stand on an entry: its last move returned true. Anything else is a programmer
  /// error and traps.
  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R

  /// The size of the entry's value, also if only its head is lent.
  ///
  /// The cursor must stand on an entry, as for ``withEntry(_:)``.
  var valueCount: Int { get }
}

extension EngineCursor {
  package var valueCount: Int { withEntry { _, value in value.byteCount } }
}

/// A contiguous range of keys, from `lower` up to and without `upper`.
package struct EngineRange: Hashable, Sendable {
  package var lower: [UInt8]
  /// Exclusive; nil for no upper bound.
  package var upper: [UInt8]?

  package init(from lower: [UInt8] = [], upTo upper: [UInt8]? = nil) {
    self.lower = lower
    self.upper = upper
  }

  /// All keys that begin with `prefix`.
  package init(prefix: [UInt8]) {
    self.init(from: prefix, upTo: EngineRange.successor(ofPrefix: prefix))
  }

  /// The least key above every key that begins with `prefix`; nil if there is no such key.
  package static func successor(ofPrefix prefix: [UInt8]) -> [UInt8]? {
    var bytes = prefix
    while let last = bytes.popLast() {
      if last < 0xFF {
        bytes.append(last + 1)
        return bytes
      }
    }
    return nil
  }
}

/// The result of a commit.
package struct Commit: Sendable {
  /// The batch's position in the order of commits; 0 if no row was applied.
  package var sequence: UInt64
  /// The conditions that failed, by the index that ``WriteBatch/require(_:_:)`` returned.
  package var failed: Set<Int>

  package init(sequence: UInt64, failed: Set<Int> = []) {
    self.sequence = sequence
    self.failed = failed
  }
}

/// The sizes that an engine accepts.
package enum EngineLimits {
  /// Room for a user's key of 64 KiB and the store's bytes before and after it.
  package static let keyBytes = (64 << 10) + 64
  /// Room for a payload of 32 MiB and its record header.
  package static let valueBytes = (32 << 20) + (64 << 10)
  package static let batchBytes = 64 << 20
}
