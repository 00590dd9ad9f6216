import Foundation

/// The engine of a store, and everything that its reads and writes share.
///
/// The store makes one context. Its caches, and the operations that walk through it (sweep,
/// eviction, migration), hold the context and not the store. The context does not know which caches
/// are open, so there is no cycle of references.
///
/// Its methods translate the engine's errors: above them there is only ``StoreError``.
final class StoreContext: Sendable {
  let engine: any StorageEngine
  let clock: any WallClock
  /// The origin of this store's entries.
  let origin: Origin
  let observations = Observations()
  let counts = StoreCounts()
  let log: StoreLog
  let budgets: Budgets
  let invalidatedTags = InvalidatedTags()
  let loads = LoadRegister()
  let activity = Activity()
  /// The decoded values in memory; nil for a store in memory, whose entries are there anyway.
  let memory: StoreMemory?
  let loadTimer: LoadTimer
  /// A random number from 0 to 1, without 1.
  let random: @Sendable () -> Double
  let isReadOnly: Bool
  /// The size in bytes from which on a payload is compressed; `Int.max` for none.
  let compressedFrom: Int
  private let durability: Durability

  init(_ engine: any StorageEngine, options: Store.Options, origin: Origin) {
    self.engine = engine
    self.origin = origin
    clock = options.clock
    log = StoreLog(options)
    memory = origin == .memory ? nil : StoreMemory(limit: options.memoryBytes)
    durability = options.durability
    (loadTimer, random) = (options.loadTimer, options.random)
    isReadOnly = options.access == .readOnly
    compressedFrom = origin == .memory ? .max : options.compressedFrom
    budgets = Budgets(storeLimit: options.access == .readOnly ? nil : options.byteBudget)
  }
}

extension StoreContext {
  /// The memory for a cache that is opened with a setting; nil for none.
  func memory(for tier: MemoryTier) -> CacheMemory? {
    guard let memory else { return nil }
    let residents: MemoryCache? =
      switch tier {
      case .shared: memory.shared
      case .none: nil
      case .bytes(let limit): MemoryCache(limit: limit)
      }
    return residents.map { CacheMemory($0, of: memory, in: self) }
  }
}

// MARK: - Reading

extension StoreContext {
  /// Throws if the store is closed, or belongs to another process.
  ///
  /// A call that takes a lock checks this first: in a forked child the lock may be held by a thread
  /// that does not exist there.
  func checkOpen() throws(StoreError) {
    do throws(EngineError) {
      try engine.checkOpen()
    } catch {
      throw StoreError(error)
    }
  }

  /// Reads the value under a physical key; nil if there is none.
  func get(_ key: [UInt8], cache: String = "") throws(StoreError) -> [UInt8]? {
    do throws(EngineError) {
      return try engine.get(key.span.bytes)
    } catch {
      throw StoreError(error, cache: cache)
    }
  }

  /// Reads the value under a physical key into `buffer`; false if there is none.
  func get(_ key: [UInt8], into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    do throws(EngineError) {
      return try engine.get(key.span.bytes, into: &buffer)
    } catch {
      throw StoreError(error)
    }
  }

  /// Reads the value under a physical key into `buffer`, without a payload that is in a segment.
  ///
  /// - Returns: The size of the whole value; nil if there is none.
  func getHead(_ key: [UInt8], into buffer: inout ValueBuffer) throws(StoreError) -> Int? {
    do throws(EngineError) {
      return try engine.getHead(key.span.bytes, into: &buffer)
    } catch {
      throw StoreError(error)
    }
  }

  /// A cursor before the first key of `range`; its errors name `cache`.
  ///
  /// With `readsPayloads` false it lends heads, see ``StorageEngine/headCursor(over:)``.
  func cursor(
    over range: EngineRange, cache: String = "", readsPayloads: Bool = true
  ) throws(StoreError) -> StoreCursor {
    do throws(EngineError) {
      let cursor = try readsPayloads ? engine.cursor(over: range) : engine.headCursor(over: range)
      return StoreCursor(cursor, cache: cache, log)
    } catch {
      throw StoreError(error, cache: cache)
    }
  }
}

/// An engine's cursor whose errors are ``StoreError``s.
struct StoreCursor {
  private let cursor: any EngineCursor
  private let cache: String
  private let log: StoreLog

  init(_ cursor: any EngineCursor, cache: String, _ log: StoreLog) {
    (self.cursor, self.cache, self.log) = (cursor, cache, log)
  }

  private func failure(_ error: EngineError) -> StoreError {
    let error = StoreError(error, cache: cache)
    log.found(error)
    return error
  }

  /// See ``EngineCursor/isComplete``.
  var isComplete: Bool { cursor.isComplete }

  /// See ``EngineCursor/next()``.
  func next() throws(StoreError) -> Bool {
    do throws(EngineError) {
      return try cursor.next()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/previous()``.
  func previous() throws(StoreError) -> Bool {
    do throws(EngineError) {
      return try cursor.previous()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/seekToEnd()``.
  func seekToEnd() throws(StoreError) {
    do throws(EngineError) {
      try cursor.seekToEnd()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/renew()``.
  func renew() throws(StoreError) {
    do throws(EngineError) {
      try cursor.renew()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/valueCount``.
  var valueCount: Int { cursor.valueCount }

  /// See ``EngineCursor/withEntry(_:)``.
  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    try cursor.withEntry(body)
  }
}

// MARK: - Writing

extension StoreContext {
  /// Commits a write: applies its rows as one batch, and notes the buckets of its index rows.
  ///
  /// Evicts entries if a budget is short of room. An empty write is not committed.
  ///
  /// `durability` is the store's option if it is nil. `now` is the date to evict by; nil reads the
  /// clock when needed, which is allowed only to callers that hold no lock, because the clock may
  /// call the store.
  ///
  /// Throws ``StoreError/budgetExceeded(bytes:budget:)`` if there is no room: nothing is written,
  /// and nothing was evicted unless some entries could not be. Otherwise it throws as the engine
  /// does.
  @discardableResult
  func commit(
    _ write: inout PendingWrite, _ durability: Durability? = nil, at now: Date? = nil
  ) throws(StoreError) -> Commit {
    guard !write.rows.isEmpty else { return Commit(sequence: 0) }
    // After a failed commit too: it may have taken effect.
    defer { write.dueNotes.note() }
    let isSynced = (durability ?? self.durability) == .powerLoss
    return try apply(&write.rows, synced: isSynced, at: now)
  }

  /// Writes rows of the store's own.
  func writeMetadata(
    _ rows: inout WriteBatch, synced: Bool = false, cache: String = ""
  ) throws(StoreError) {
    do throws(EngineError) {
      try engine.write(&rows, synced: synced)
    } catch {
      throw shortage(of: error).map { StoreError($0) } ?? StoreError(error, cache: cache)
    }
  }

  // Inlined: a call here costs every save 52 instructions.
  @inline(__always) private func apply(
    _ rows: inout WriteBatch, synced: Bool, at now: Date?
  ) throws(StoreError) -> Commit {
    if let (limit, bytes) = budgets.accounting.budgetBelow(rows) {
      throw .budgetExceeded(bytes: bytes, budget: limit)
    }
    while true {
      do throws(EngineError) {
        return try engine.write(&rows, synced: synced)
      } catch {
        guard let shortage = shortage(of: error) else { throw StoreError(error) }
        guard try makeRoom(for: shortage, at: now ?? clock.now()) else {
          throw StoreError(shortage)
        }
      }
    }
  }

  /// Takes the shortage for which a write was refused; nil if it failed for another reason.
  private func shortage(of error: EngineError) -> Shortage? {
    guard case .refused(let number) = error else { return nil }
    return budgets.accounting.takeShortage(number)
  }

  /// Evicts until the room that a write was short of is there; returns whether it is.
  private func makeRoom(for shortage: Shortage, at now: Date) throws(StoreError) -> Bool {
    try checkOpen()
    return try budgets.withHand(of: shortage.budget) { hand throws(StoreError) in
      var eviction = Eviction(of: shortage, in: self, at: now, from: hand)
      defer { hand = eviction.hand }
      return try eviction.makeRoom()
    }
  }

  /// Rewrites the files that hold `range`, so that deleted entries take no room.
  func compact(_ range: EngineRange) throws(StoreError) {
    do throws(EngineError) {
      try engine.compact(range)
    } catch {
      throw StoreError(error)
    }
  }

  /// The approximate size of the entries of `range` in files.
  func approximateBytes(in range: EngineRange) throws(StoreError) -> UInt64 {
    do throws(EngineError) {
      return try engine.approximateBytes(in: range)
    } catch {
      throw StoreError(error)
    }
  }

  /// Waits until everything that was committed before is safe from power loss.
  func flush() throws(StoreError) {
    do throws(EngineError) {
      try engine.flush()
    } catch {
      throw StoreError(error)
    }
  }
}
