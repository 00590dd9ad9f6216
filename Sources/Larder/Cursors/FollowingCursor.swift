/// A cursor that follows a list of keys in their order, and reads the entries under them.
///
/// Where the keys are close together, steps from one to the next take less time than a lookup for
/// each. Where they lie far apart, the cursor gives up, and leaves the keys to lookups.
struct FollowingCursor {
  /// The entries that are read on the way to a key before the cursor jumps there.
  private static var mostSteps: Int { 6 }
  /// The jumps in a row after which it gives up.
  private static var mostJumps: Int { 8 }

  enum Arrival {
    /// On the entry under the key.
    case found
    /// Behind the key, which no entry has.
    case missing
    /// The cursor cannot tell.
    case unknown
  }

  private var cursor: (any EngineCursor)?
  private var isOnEntry = false
  /// The jumps since the last key that was reached by steps.
  private var jumps = 0
  private var lastKey: [UInt8] = []

  /// Moves to the entry under a key, which should be greater than the ones before.
  ///
  /// Entries in a damaged part of a file look as if they were missing, so after damage no key is.
  mutating func move(to key: [UInt8], in engine: any StorageEngine) throws(StoreError) -> Arrival {
    guard jumps < Self.mostJumps, lastKey.lexicographicallyPrecedes(key) else { return .unknown }
    lastKey = key
    do throws(StoreError) {
      let cursor = try begun(at: key, in: engine)
      var (steps, order) = (0, isOnEntry ? cursor.order(to: key) : 1)
      while order < 0 {
        if steps == Self.mostSteps {
          jumps += 1
          try cursor.seek(to: key.span.bytes)
        }
        steps += 1
        isOnEntry = try cursor.next()
        order = isOnEntry ? cursor.order(to: key) : 1
      }
      if steps <= Self.mostSteps { jumps = 0 }
      if order == 0 { return .found }
      return cursor.isComplete ? .missing : .unknown
    } catch .corrupt {
      jumps = Self.mostJumps
      return .unknown
    }
  }

  /// Lends the entry that it is on, without a payload in a segment, and the size of its value.
  func withEntry<R>(_ body: (_ head: RawSpan, _ count: Int) -> R) -> R {
    guard let cursor else { preconditionFailure("the cursor has not moved") }
    let count = cursor.valueCount
    return cursor.withEntry { _, head in body(head, count) }
  }

  /// The cursor; at the first call it is put on the first entry from `key` on.
  private mutating func begun(
    at key: [UInt8], in engine: any StorageEngine
  ) throws(StoreError) -> any EngineCursor {
    if let cursor { return cursor }
    let cursor = try engine.headCursor(over: EngineRange(from: key))
    self.cursor = cursor
    isOnEntry = try cursor.next()
    return cursor
  }
}

extension EngineCursor {
  /// Less than 0 if the entry's key is before `key`, 0 if it is the same, else more.
  fileprivate func order(to key: [UInt8]) -> Int {
    withEntry { entry, _ in
      entry.withUnsafeBytes { entry in
        key.withUnsafeBytes { key in
          if isOrdered(entry, before: key) { return -1 }
          return isOrdered(key, before: entry) ? 1 : 0
        }
      }
    }
  }
}
