import CLarderLevelDB
import Synchronization

/// The database of an engine, which can be closed and reopened under its callers.
///
/// A call enters before it uses the database and leaves afterwards, so the database is not freed
/// under it. The iterators of cursors end before their database.
struct DatabaseHandle: ~Copyable {
  private let gate = Gate()
  private let current: Atomic<OpaquePointer>
  private let iterators = IteratorRegistry()
  private let cause = Mutex<String?>(nil)

  init(_ database: OpaquePointer) { current = Atomic(database) }

  /// LevelDB's database; only between ``enter()`` and ``leave()``.
  var pointer: OpaquePointer { current.load(ordering: .relaxed) }

  /// Why there is no database although the engine is open; nil if there is one.
  var downCause: String? { cause.withLock { $0 } }

  /// Whether calls may enter.
  var isOpen: Bool { gate.isOpen }

  /// Enters, and returns true; or returns false while there is no database.
  func enter() -> Bool { gate.enter() }

  /// Every ``enter()`` that returned true is followed by one.
  func leave() { gate.leave() }

  /// Waits for the calls under way and closes the database, which is to be reopened.
  ///
  /// If the last attempt to reopen it failed, this only replaces the cause.
  func takeDown(because reason: String) {
    let wasDown = cause.withLock { old in
      defer { old = reason }
      return old != nil
    }
    guard !wasDown else { return }
    gate.close()
    iterators.endAll()
    clarder_close(pointer)
  }

  /// Uses another database from now on; ``bringUp()`` lets calls in.
  func replace(with database: OpaquePointer) { current.store(database, ordering: .releasing) }

  /// Lets calls in after ``takeDown(because:)``.
  func bringUp() {
    cause.withLock { $0 = nil }
    gate.open()
  }

  /// Waits for the calls under way and closes the database for good.
  func close() {
    let isDown = cause.withLock { cause in
      defer { cause = nil }
      return cause != nil
    }
    gate.close()
    iterators.endAll()
    iterators.removeAll()
    if !isDown { clarder_close(pointer) }
  }
}

// MARK: - Iterators

extension DatabaseHandle {
  /// Makes an iterator for a cursor; only between ``enter()`` and ``leave()``.
  func makeIterator() -> LevelDBIterator {
    iterators.make(over: pointer)
  }

  /// Starts an iterator anew, in the current state; only between ``enter()`` and ``leave()``.
  func renew(_ iterator: LevelDBIterator) { iterators.renew(iterator, over: pointer) }

  /// Begins a generation of iterators; see ``IteratorRegistry``.
  func beginGeneration() -> UInt64 { iterators.beginGeneration() }

  /// The lowest generation of an iterator; nil if there is none.
  var oldestGeneration: UInt64? { iterators.oldestGeneration }

  /// Frees an iterator whose cursor ends.
  func release(_ iterator: LevelDBIterator) { iterators.release(iterator) }

  /// The entry that an iterator stands on, or stood on when the database was closed.
  ///
  /// Only after ``enter()`` has returned false: it ends the iterator, as closing does.
  func lastEntry(of iterator: LevelDBIterator) -> LevelDBIterator.Entry? {
    iterators.lastEntry(of: iterator)
  }
}
