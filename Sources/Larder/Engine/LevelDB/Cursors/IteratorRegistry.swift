/// The iterators of live cursors, which are freed before their database.
///
/// Each iterator has the generation of the state that it reads. A segment that no row names any
/// more is deleted only when no iterator has an older generation.
struct IteratorRegistry: ~Copyable {
  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct State {
    var iterators: [ObjectIdentifier: (iterator: LevelDBIterator, generation: UInt64)] = [:]
    var generation: UInt64 = 0
  }

  private let state = Lock(State())

  /// Makes an iterator over the current state of a database.
  func make(over database: OpaquePointer) -> LevelDBIterator {
    // Under the lock, so that it reads no state from before its generation.
    state.withLock { state in
      let iterator = LevelDBIterator(over: database)
      state.iterators[ObjectIdentifier(iterator)] = (iterator, state.generation)
      return iterator
    }
  }

  /// Starts an iterator anew, in the current state of a database.
  func renew(_ iterator: LevelDBIterator, over database: OpaquePointer) {
    state.withLock { state in
      iterator.renew(over: database)
      state.iterators[ObjectIdentifier(iterator)] = (iterator, state.generation)
    }
  }

  /// Begins a generation, and returns its number; the iterators so far have a lower one.
  func beginGeneration() -> UInt64 {
    state.withLock { state in
      state.generation += 1
      return state.generation
    }
  }

  /// The lowest generation of an iterator; nil if there is none.
  var oldestGeneration: UInt64? {
    state.withLock { $0.iterators.values.lazy.map(\.generation).min() }
  }

  /// Frees an iterator whose cursor ends.
  func release(_ iterator: LevelDBIterator) {
    state.withLock { state in
      state.iterators[ObjectIdentifier(iterator)] = nil
      iterator.end(keepingEntry: false)
    }
  }

  /// Ends all iterators; each keeps a copy of its entry for its cursor.
  ///
  /// Only when no call can be using one.
  func endAll() {
    state.withLock { for (iterator, _) in $0.iterators.values { iterator.end(keepingEntry: true) } }
  }

  /// Forgets all iterators, which have ended.
  func removeAll() { state.withLock { $0.iterators = [:] } }

  /// Ends an iterator, and returns the entry that it stood on.
  func lastEntry(of iterator: LevelDBIterator) -> LevelDBIterator.Entry? {
    state.withLock { _ in
      iterator.end(keepingEntry: true)
      return iterator.lastEntry
    }
  }
}
