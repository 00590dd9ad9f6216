import Synchronization

/// The iterators of live cursors, which are freed before their database.
struct IteratorRegistry: ~Copyable {
  private let iterators = Mutex<[ObjectIdentifier: LevelDBIterator]>([:])

  func add(_ iterator: LevelDBIterator) {
    iterators.withLock { $0[ObjectIdentifier(iterator)] = iterator }
  }

  /// Frees an iterator whose cursor ends.
  func release(_ iterator: LevelDBIterator) {
    iterators.withLock { iterators in
      iterators[ObjectIdentifier(iterator)] = nil
      iterator.end(keepingEntry: false)
    }
  }

  /// Ends all iterators; each keeps a copy of its entry for its cursor.
  ///
  /// Only when no call can be using one.
  func endAll() {
    iterators.withLock { for iterator in $0.values { iterator.end(keepingEntry: true) } }
  }

  /// Forgets all iterators, which have ended.
  func removeAll() { iterators.withLock { $0 = [:] } }

  /// Ends an iterator, and returns the entry that it stood on.
  func lastEntry(of iterator: LevelDBIterator) -> LevelDBIterator.Entry? {
    iterators.withLock { _ in
      iterator.end(keepingEntry: true)
      return iterator.lastEntry
    }
  }
}
