import CLarderLevelDB

/// A LevelDB iterator that its cursor moves and its engine can end.
final class LevelDBIterator {
  typealias Entry = (key: [UInt8], value: [UInt8])

  // Nil once it has ended.
  private var handle: OpaquePointer?
  private var position = clarder_position()
  private var confirmed: ConfirmedValue?
  // Where entries are copied to. Made when it is first used: most cursors read few entries.
  private var runBytes: UnsafeMutableRawBufferPointer?

  /// The entry that the iterator stood on when it ended with the database.
  private(set) var lastEntry: Entry?

  /// Whether the database has ended under it; it can be renewed over another one.
  var hasEnded: Bool { handle == nil }

  init(over database: OpaquePointer) {
    handle = clarder_cursor_create(database)
  }

  deinit { runBytes?.deallocate() }

  /// Moves to the first entry whose key is `key` or greater.
  func seek(to key: [UInt8]) -> Bool {
    move { handle in key.withUnsafeBytes { clarder_cursor_seek(handle, clarder_slice($0)) } }
  }

  /// Moves to the last entry whose key is less than `key`.
  func seek(before key: [UInt8]) -> Bool {
    seek(to: key) ? previous() : seekToLast()
  }

  func seekToLast() -> Bool {
    move(clarder_cursor_seek_to_last)
  }

  func next() -> Bool {
    move(clarder_cursor_next)
  }

  /// Copies entries from the one that it stands on, and moves behind them.
  ///
  /// They end below `upper`, and are `count` at most. Nil when the first one is too large; then it
  /// stands there still.
  func copyEntries(below upper: [UInt8]?, count: Int) -> EntryRun? {
    let bytes = runBytes ?? .allocate(byteCount: EntryRun.mostBytes, alignment: 1)
    runBytes = bytes
    guard let start = bytes.baseAddress else { return nil }
    var copied = bytes.count
    _ = move { handle in
      guard let upper else { return clarder_cursor_copy(handle, nil, count, start, &copied) }
      return upper.withUnsafeBytes { upper in
        withUnsafePointer(to: clarder_slice(upper)) { upper in
          clarder_cursor_copy(handle, upper, count, start, &copied)
        }
      }
    }
    var run = EntryRun(over: UnsafeRawBufferPointer(start: start, count: copied))
    return run.advance() ? run : nil
  }

  /// Whether it stands on an entry.
  var isOnEntry: Bool { position.is_entry }

  func previous() -> Bool {
    move(clarder_cursor_previous)
  }

  /// The key that the iterator stands on, until it moves.
  var key: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(position.key)
  }

  /// The value that the iterator stands on, until it moves.
  var value: UnsafeRawBufferPointer {
    confirmed?.bytes ?? UnsafeRawBufferPointer(position.value)
  }

  /// Whether the entry may be an old one, because something newer could not be read.
  ///
  /// LevelDB passes over damaged blocks. What older tables hold under the same keys, replaced or
  /// removed long ago, then comes to light.
  var isDoubtful: Bool { position.has_failed }

  /// Looks the entry up by its key, which finds the newest one or fails, and takes its value.
  ///
  /// False when the key is absent or cannot be read.
  func confirm(in database: OpaquePointer) -> Bool {
    let found = ConfirmedValue()
    do throws(EngineError) {
      guard try found.read(key.bytes, from: database) else { return false }
    } catch {
      // The iterator has a failure of its own to tell of, at the end of the walk.
      return false
    }
    confirmed = found
    return true
  }

  /// Throws the first failure that the iterator has met.
  func checkStatus() throws(EngineError) {
    if let handle { try check(clarder_cursor_status(handle)) }
  }

  /// Starts anew, in the present state of the database and without its failures.
  func renew(over database: OpaquePointer) {
    clarder_cursor_free(handle)
    handle = clarder_cursor_create(database)
    position = clarder_position()
    confirmed = nil
    lastEntry = nil
  }

  /// Frees the iterator.
  ///
  /// What it stands on can be kept for a cursor that lends it later.
  func end(keepingEntry: Bool) {
    guard let handle else { return }
    if keepingEntry, position.is_entry {
      lastEntry = ([UInt8](key), [UInt8](value))
    }
    position = clarder_position()
    clarder_cursor_free(handle)
    self.handle = nil
  }

  private func move(_ step: (OpaquePointer) -> clarder_position) -> Bool {
    guard let handle else { return false }
    confirmed = nil
    position = step(handle)
    return position.is_entry
  }
}

/// The value that a lookup has found in the place of an iterator's.
private final class ConfirmedValue {
  private var buffer = ValueBuffer()

  var bytes: UnsafeRawBufferPointer { buffer.memory.bytes }

  func read(_ key: RawSpan, from database: OpaquePointer) throws(EngineError) -> Bool {
    try buffer.read(key, from: database)
  }
}

// @unchecked: the thread of its cursor uses it within the engine's gate; `end` and `lastEntry` are
// called under the engine's lock on its iterators, by that same thread or once the gate has closed,
// when that thread cannot be inside.
extension LevelDBIterator: @unchecked Sendable {}
