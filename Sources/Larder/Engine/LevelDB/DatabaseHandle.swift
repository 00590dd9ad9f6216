import CLarder
import Synchronization

/// The database of an engine, which can be closed and reopened under its callers.
///
/// A call enters before it uses the database and leaves afterwards, so the database is not freed
/// under it. The iterators of cursors end before their database.
struct DatabaseHandle: ~Copyable {
  private let gate = Gate()
  private let current: Atomic<OpaquePointer>
  private let iterators = IteratorRegistry()
  private let condition = Lock(Condition.up)

  /// Whether there is a database.
  enum Condition {
    case up
    /// None although the engine is open: it is being reopened, or that has failed.
    case down
    /// None, and the directory belongs to whoever takes it; see ``LevelDBEngine/suspend()``.
    case suspended
    case closed
  }

  init(_ database: OpaquePointer) { current = Atomic(database) }

  /// LevelDB's database; only between ``enter()`` and ``leave()``.
  var pointer: OpaquePointer { current.load(ordering: .relaxed) }

  /// Whether there is no database although the engine is open.
  var isDown: Bool {
    if case .down = condition.withLock({ $0 }) { true } else { false }
  }

  var isSuspended: Bool {
    if case .suspended = condition.withLock({ $0 }) { true } else { false }
  }

  /// Whether calls may enter.
  var isOpen: Bool { gate.isOpen }

  /// Enters, and returns true; or returns false while there is no database.
  func enterIfUp() -> Bool { gate.enter() }

  /// Enters if there is a database, and returns whether there is one.
  func enter() -> Condition {
    while !gate.enter() {
      let reason = condition.withLock { $0 }
      // The gate is closed only under another condition, so it was opened meanwhile.
      if case .up = reason { continue }
      return reason
    }
    return .up
  }

  /// Every ``enterIfUp()`` that returned true, and every ``enter()`` that returned
  /// ``Condition/up``, is followed by one.
  func leave() { gate.leave() }

  /// Uses another database from now on; ``bringUp()`` lets calls in.
  func replace(with database: OpaquePointer) { current.store(database, ordering: .releasing) }

  /// Lets calls in after ``close(as:after:)``.
  func bringUp() {
    gate.open()
    // Not before: while the condition is up, nobody is turned away.
    _ = exchangeCondition(.up)
  }

  /// Waits for the calls under way and closes the database, if it is not closed already.
  ///
  /// Only one thread at a time may call it. Unless the condition is ``Condition/closed``, the
  /// database can be reopened, and cursors then continue after their entry.
  ///
  /// - Parameters:
  ///   - new: The condition from now on, which calls that come later are told.
  ///   - body: Runs when no call is under way. It is passed whether the database is still open.
  func close(as new: Condition, after body: (_ isUp: Bool) -> Void = { _ in }) {
    let old = exchangeCondition(new)
    gate.close()
    let isUp = if case .up = old { true } else { false }
    body(isUp)
    iterators.endAll()
    if case .closed = new { iterators.removeAll() }
    if isUp { clarder_close(pointer) }
  }

  private func exchangeCondition(_ new: Condition) -> Condition {
    condition.withLock { old in
      defer { old = new }
      return old
    }
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
  /// Only after ``enterIfUp()`` has returned false: it ends the iterator, as closing does.
  func lastEntry(of iterator: LevelDBIterator) -> LevelDBIterator.Entry? {
    iterators.lastEntry(of: iterator)
  }
}
