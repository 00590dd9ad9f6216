import Foundation

/// The engine of a store, and everything that its reads and writes share.
///
/// The store makes one context. Its caches, and the operations that walk through it (sweep,
/// eviction, migration), hold the context and not the store. The context does not know which caches
/// are open, so there is no cycle of references.
///
/// Its methods add the name of the cache to the engine's errors.
final class StoreContext: Sendable {
  let engine: any StorageEngine
  let clock: any WallClock
  /// The origin of this store's entries.
  let origin: Origin
  let observations = Observations()
  let counts: StoreCounts
  let log: StoreLog
  let budgets: Budgets
  /// The budget of the store's files; nil if they have none.
  let diskBudget: DiskBudget?
  let invalidatedTags = InvalidatedTags()
  let endedIDs = EndedIDs()
  let notes = ExpiryNotes()
  /// The scan for notes that has begun.
  private let noteScan = Lock<NoteScan?>(nil)
  let loads = LoadRegister()
  let sharedCaches = SharedCaches()
  let activity = Activity()
  /// The decoded values in memory; nil for a store in memory, whose entries are there anyway.
  let memory: StoreMemory?
  let loadTimer: LoadTimer
  /// A random number from 0 to 1, without 1.
  let random: @Sendable () -> Double
  let isReadOnly: Bool
  /// The size in bytes from which on a payload is compressed; `Int.max` for none.
  let compressedFrom: Int
  /// What seals payloads and validators; nil if they are not sealed.
  let seal: StoreSeal?
  private let durability: Durability
  let sweepInterval: Duration?

  init(
    _ engine: any StorageEngine, options: Store.Options, origin: Origin, seal: StoreSeal? = nil
  ) {
    self.engine = engine
    self.seal = seal
    self.origin = origin
    clock = options.clock
    counts = StoreCounts(reportingTo: options.eventHandler)
    log = StoreLog(options)
    memory = origin == .memory ? nil : StoreMemory(limit: options.memoryBytes)
    durability = options.durability
    sweepInterval = options.sweepInterval
    (loadTimer, random) = (options.loadTimer, options.random)
    isReadOnly = options.access == .readOnly
    compressedFrom = origin == .memory ? .max : options.compressedFrom(isSealed: seal != nil)
    let mayWrite = options.access == .readWrite
    let diskLimit = mayWrite && origin == .disk ? options.diskBudget : nil
    diskBudget = diskLimit.map { [activity] in
      DiskBudget($0, tableBytes: options.engineOptions.maxFileBytes, activity)
    }
    budgets = Budgets(
      storeLimit: mayWrite ? options.byteBudget : nil, diskBudget: diskLimit)
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
  /// Reads the value under a physical key; nil if there is none.
  func get(_ key: [UInt8], cache: String = "") throws(StoreError) -> [UInt8]? {
    do throws(StoreError) {
      return try engine.get(key.span.bytes)
    } catch {
      throw error.naming(cache: cache)
    }
  }

  /// A cursor before the first key of `range`; its errors name `cache`.
  ///
  /// With `readsPayloads` false it lends heads, see ``StorageEngine/headCursor(over:)``.
  func cursor(
    over range: EngineRange, cache: String = "", readsPayloads: Bool = true
  ) throws(StoreError) -> StoreCursor {
    do throws(StoreError) {
      let cursor = try readsPayloads ? engine.cursor(over: range) : engine.headCursor(over: range)
      return StoreCursor(cursor, cache: cache, log)
    } catch {
      throw error.naming(cache: cache)
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

  private func failure(_ error: StoreError) -> StoreError {
    let error = error.naming(cache: cache)
    log.found(error)
    return error
  }

  /// See ``EngineCursor/isComplete``.
  var isComplete: Bool { cursor.isComplete }

  /// See ``EngineCursor/next()``.
  func next() throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try cursor.next()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/previous()``.
  func previous() throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try cursor.previous()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/seekToEnd()``.
  func seekToEnd() throws(StoreError) {
    do throws(StoreError) {
      try cursor.seekToEnd()
    } catch {
      throw failure(error)
    }
  }

  /// See ``EngineCursor/renew()``.
  func renew() throws(StoreError) {
    do throws(StoreError) {
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
  /// Commits a write: applies its rows as one batch.
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
    _ write: inout WriteBatch, _ durability: Durability? = nil, at now: Date? = nil
  ) throws(StoreError) -> Commit {
    guard !write.isEmpty else { return Commit(sequence: 0) }
    try sharedCaches.check(write)
    let isSynced = (durability ?? self.durability) == .powerLoss
    let byteCount = write.bytes.count
    let commit = try counts.measureCommit(synced: isSynced) { () throws(StoreError) in
      try apply(&write, synced: isSynced, at: now)
    }
    try endedIDs.check(write)
    diskBudget?.noteWrite(of: byteCount, mayWait: !write.freesRoom)
    if notes.takeScanRequest() { makeNotesAnew() }
    return commit
  }

  /// Writes rows of the store's own.
  @discardableResult func writeMetadata(
    _ rows: inout WriteBatch, synced: Bool = false, cache: String = ""
  ) throws(StoreError) -> Commit {
    do throws(StoreError) {
      return try engine.write(&rows, synced: synced)
    } catch {
      throw error.naming(cache: cache)
    }
  }

  /// Whether the store has files to which it may write, and is open.
  var hasWritableFiles: Bool { !isReadOnly && origin == .disk && engine.isUp }

  /// Puts all notes in memory into packs.
  func writeNotes(closing: Bool = false) throws(StoreError) {
    notes.requestPacks(closing: closing)
    var rows = WriteBatch()
    let key = Metadata.beginning
    rows.remove(key.span.bytes)
    rows.isAlwaysAdmitted = true
    try engine.write(&rows, synced: false)
  }

  /// Notes the records that have no note, if there may be some; visits `steps` records at most.
  func noteMissing(steps: inout Int) throws(StoreError) {
    try noteScan.withLock { scan throws(StoreError) in
      try run(&scan, steps: &steps)
    }
  }

  /// Visits some records of a scan that makes all notes anew, if there are too many old ones.
  private func makeNotesAnew() {
    noteScan.withLockIfAvailable { scan in
      do throws(StoreError) {
        let records = EngineRange(prefix: [KeySpace.records.rawValue])
        let bytes = try engine.approximateBytes(in: records)
        guard notes.beginScanIfMany(recordBytes: bytes) else { return }
        var steps = NoteScan.stepsOfSave
        try run(&scan, steps: &steps)
      } catch {
        // The save has succeeded. The next one that writes packs tries it again.
      }
    }
  }

  private func run(_ scan: inout NoteScan?, steps: inout Int) throws(StoreError) {
    guard let number = notes.neededScan else { return }
    var running = scan.take().flatMap { $0.number == number ? $0 : nil } ?? NoteScan(number: number)
    if try !running.run(in: self, steps: &steps) { scan = running }
  }

  /// Puts all notes into packs before the store is closed, so that the next opening needs no scan.
  ///
  /// If that fails, the next opening needs one.
  ///
  /// - Parameter isMarkNew: Whether the mark is to be written in any case.
  func closeNotes(isMarkNew: Bool = false) {
    guard hasWritableFiles else { return }
    do throws(StoreError) {
      // Other threads may write until the engine is closed.
      for attempt in 0..<3 where !notes.isClosed || isMarkNew && attempt == 0 {
        try writeNotes(closing: true)
      }
    } catch {
      return
    }
  }

  /// Notes that packs of notes are damaged: the next sweep scans all records.
  ///
  /// `isUnreadable` says that they are in a block that cannot be read, and remain there.
  func noteDamagedNotes(isUnreadable: Bool) {
    notes.restart(isUnreadable: isUnreadable)
    log.found(.corrupt(cache: "", key: "", file: "notes of what expires, which are made anew"))
  }

  // Inlined: a call here costs every save 52 instructions.
  @inline(__always) private func apply(
    _ rows: inout WriteBatch, synced: Bool, at now: Date?
  ) throws(StoreError) -> Commit {
    if let (limit, bytes) = budgets.accounting.budgetBelow(rows) {
      throw .budgetExceeded(bytes: bytes, budget: limit)
    }
    while true {
      do throws(StoreError) {
        return try engine.write(&rows, synced: synced)
      } catch {
        guard case .budgetExceeded = error, let shortage = rows.shortage else { throw error }
        guard try makeRoom(for: shortage, at: now ?? clock.now()) else { throw error }
      }
    }
  }

  /// Evicts until the entries of all caches have `limit` bytes at most.
  func evict(upTo limit: Int) throws(StoreError) {
    guard let shortage = budgets.shortage(ofStoreAbove: limit) else { return }
    _ = try makeRoom(for: shortage, at: clock.now())
  }

  /// Evicts until the room that a write was short of is there; returns whether it is.
  private func makeRoom(for shortage: Shortage, at now: Date) throws(StoreError) -> Bool {
    try engine.checkOpen()
    return try budgets.withTurn { () throws(StoreError) in
      var eviction = Eviction(of: shortage, in: self, at: now)
      return try eviction.makeRoom()
    }
  }
}

extension Store {
  /// The engine that holds the entries.
  package var engine: any StorageEngine { context.engine }

  /// The clock of the store.
  package var clock: any WallClock { context.clock }

  /// The timer of its loads.
  package var loadTimer: LoadTimer { context.loadTimer }

  /// The work that the store has under way.
  package var activity: Activity { context.activity }

  /// Returns random numbers from 0 to 1, without 1.
  package var random: @Sendable () -> Double { context.random }

  /// Throws if the store was opened for reading only.
  ///
  /// Writes throw this by themselves; calls that may have nothing to write check it first.
  func requireWritable() throws(StoreError) {
    guard !context.isReadOnly else { throw .readOnly(cause: "it was opened for reading only") }
  }
}
