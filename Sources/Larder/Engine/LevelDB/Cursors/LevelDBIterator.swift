import CLarder

/// A LevelDB iterator, which its cursor moves and its engine can end.
final class LevelDBIterator {
  typealias Entry = (key: [UInt8], value: [UInt8])

  // Nil once it has ended.
  private var handle: OpaquePointer?
  private var position = clarder_position()
  private var confirmed: ConfirmedValue?
  // Memory for runs, allocated when it is first used: most cursors read few entries.
  private var runBytes: UnsafeMutableRawBufferPointer?

  /// The entry that the iterator stood on when the database ended it.
  private(set) var lastEntry: Entry?

  /// Whether the database has ended it; it can be renewed over another one.
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

  /// Copies up to `count` entries below `upper`, starting with the current one, and moves behind
  /// them.
  ///
  /// Nil if the first entry is too large; the iterator then stays on it.
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

  /// The current key, valid until the iterator moves.
  var key: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(position.key)
  }

  /// The current value, valid until the iterator moves.
  var value: UnsafeRawBufferPointer {
    confirmed?.bytes ?? UnsafeRawBufferPointer(position.value)
  }

  /// Whether the current entry may be outdated, because a newer one could not be read.
  ///
  /// LevelDB skips damaged blocks. It then returns the entries that older tables hold under the
  /// same keys, which were replaced or removed long ago.
  var isDoubtful: Bool { position.has_failed }

  /// Looks up the current key, and uses the value found, which is the newest.
  ///
  /// False if the key is absent or cannot be read.
  func confirm(in database: OpaquePointer) -> Bool {
    let found = ConfirmedValue()
    do throws(StoreError) {
      guard try found.read(key.bytes, from: database) else { return false }
    } catch {
      // The iterator has its own failure, which is thrown at the end of the scan.
      return false
    }
    confirmed = found
    return true
  }

  /// Throws the first failure of the iterator.
  func checkStatus() throws(StoreError) {
    if let handle { try check(clarder_cursor_status(handle)) }
  }

  /// Starts anew, in the current state of the database and without failures.
  func renew(over database: OpaquePointer) {
    clarder_cursor_free(handle)
    handle = clarder_cursor_create(database)
    position = clarder_position()
    confirmed = nil
    lastEntry = nil
  }

  /// Frees the iterator.
  ///
  /// Its entry can be kept for a cursor that lends it later.
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

/// A value found by a lookup, which replaces the iterator's value.
private final class ConfirmedValue {
  private var buffer = ValueBuffer()

  var bytes: UnsafeRawBufferPointer { buffer.memory.bytes }

  func read(_ key: RawSpan, from database: OpaquePointer) throws(StoreError) -> Bool {
    try buffer.read(key, from: database)
  }
}

// @unchecked: the thread of its cursor uses it while it has entered the database. `end` and
// `lastEntry` are called under the lock of the registry, by that thread or once no call can be in
// the database.
extension LevelDBIterator: @unchecked Sendable {}
