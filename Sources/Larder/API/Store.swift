public import Foundation
import Synchronization

/// An embedded key-value store: a directory in which named caches keep typed values for their
/// lifetimes.
///
/// ```swift
/// let store = try Store(at: directory)                     // opens or creates
/// let genres = try store.cache("genres", of: [Genre].self) // fresh for 7 days
/// try genres.save(list, for: "all")
/// let list = try genres.value(for: "all")
/// ```
///
/// - Threads: a store and its caches may be used from any thread at once. Calls are synchronous;
///   ``run(_:)`` makes them from `async` functions. See <doc:Blocking>.
/// - Owner: one `Store` in one process has a directory open. A second one gets
///   ``StoreError/locked(pid:)``.
/// - Atomicity: each call, and each ``write(durability:_:)``, takes effect completely or not at
///   all, even if the process crashes.
/// - Durability: an acknowledged write survives a crash or kill of the process. A power loss may
///   lose the last writes, unless they ask for ``Durability/powerLoss`` or ``flush()`` was called.
/// - Errors: a store, its caches and their cursors throw only ``StoreError``, and the errors that
///   your closure throws in ``write(durability:_:)``. Each method names its cases.
///
/// It is not a database: entries are found by key, key range and prefix only, and there are no
/// transactions that read.
public final class Store: Sendable {
  let context: StoreContext
  /// The report of a recovery at opening: from a torn log after a power loss, or from damage.
  ///
  /// Nil if there was nothing to recover.
  public let recovery: RecoveryReport?
  private let access: Access
  private let registry: Lock<Registry>
  private let openCaches: OpenCaches
  private let sweeper = Lock(Sweeper())
  private let isClosing = Atomic<Bool>(false)
  /// Ends the timers of the store.
  private let endTimers = Lock<[@Sendable () -> Void]>([])
  #if canImport(Darwin)
    private let endWatchingPressure = Lock<(@Sendable () -> Void)?>(nil)
  #endif
  let threads: BlockingThreads
  let groupFlush: GroupFlush

  private init(
    _ context: StoreContext, _ registry: consuming Registry, access: Access,
    recovery: RecoveryReport? = nil
  ) {
    self.context = context
    self.access = access
    self.recovery = recovery
    threads = BlockingThreads()
    groupFlush = GroupFlush(of: context.engine, on: threads)
    openCaches = registry.open
    context.engine.join(StoreParticipant(for: context, registry.open))
    self.registry = Lock(registry)
  }

  deinit {
    stopTimers()
    #if canImport(Darwin)
      endWatchingPressure.withLock { $0 }?()
    #endif
    // A thread that still writes would hold the directory for a moment.
    for cache in openCaches.all.values { cache.slides?.waitUntilIdle() }
    context.diskBudget?.end()
    threads.endIdle()
    context.engine.endBackgroundWork()
    context.closeNotes()
    context.observations.finish()
  }

  /// Opens the store in `engine`, or creates it there.
  package convenience init(
    engine: any StorageEngine, options: Options = Options(), origin: Origin,
    recovery: RecoveryReport? = nil
  ) throws(StoreError) {
    try options.checkRanges()
    let seal: StoreSeal? = origin == .disk ? try StoreSeal.ofStore(in: engine, options) : nil
    let context = StoreContext(engine, options: options, origin: origin, seal: seal)
    let registry = try Registry(of: context, access: options.access)
    try context.invalidatedTags.read(from: engine)
    try context.notes.read(from: engine, isIntact: recovery == nil)
    self.init(context, registry, access: options.access, recovery: recovery)
    if let recovery { context.log.recovered(recovery) }
    guard access == .readWrite else { return }
    try withRegistry { registry throws(StoreError) in try context.budgets.resume(registry) }
    reclaim(atOpen: true)
    endTimers.withLock { $0.append(sendGauges(by: options.statisticsTrigger)) }
    context.diskBudget?.begin { [weak self] in self?.keepDiskBudget() ?? true }
    if let interval = options.sweepInterval {
      sweepInBackground(every: interval, by: options.sweepTrigger)
    }
    if options.publishesStatistics, origin == .disk {
      publishStatistics(by: options.statisticsTrigger)
    }
    if options.control { try acceptCommands() }
    #if canImport(Darwin)
      endWatchingPressure.withLock { $0 = context.memory?.watchPressure(context.log) }
    #endif
  }

  /// Opens the store in a directory, or creates it there.
  ///
  /// A new store is created if the directory is missing or empty. A directory with other contents,
  /// such as another program's LevelDB, is refused and left unchanged. Files are readable by their
  /// owner only.
  ///
  /// - Parameters:
  ///   - directory: A `file:` URL. Its parent must exist. Symbolic links are followed.
  ///   - options: See ``Options``.
  /// - Throws: ``StoreError/locked(pid:)`` if it is open elsewhere;
  ///   ``StoreError/incompatible(_:)`` if it is not a store, or one of a later version;
  ///   ``StoreError/wrongKey(found:given:)`` if its values are sealed with another key;
  ///   ``StoreError/corrupt(cache:key:file:)`` if the store's own rows are damaged;
  ///   ``StoreError/invalidArgument(_:)`` for an option outside its range; ``StoreError/io(_:)``;
  ///   ``StoreError/diskFull`` if the store's reserve is not enough to open it: with
  ///   ``Options/access`` set to ``Access/readOnly`` it can be read. The contents of the directory
  ///   stay as they were.
  /// - Complexity: Reads LevelDB's log, at most two write buffers, and the end of each file;
  ///   deletes up to 10,000 rows of cleared and dropped caches. With ``Access/readOnly``, a hard
  ///   link or a copy of each file.
  public convenience init(
    at directory: URL, options: Options = Options()
  ) throws {
    let path = try Self.path(of: directory)
    do throws(StoreError) {
      try Self.checkNotedDamage(at: path, options)
      try self.init(inDirectory: path, options: options)
    } catch {
      guard options.access == .readWrite, case .corrupt = error else { throw error }
      let report: RecoveryReport
      switch options.onDamage {
      case .fail: throw error
      case .recreate: report = try RecoveryReport(settingAside: path, because: error)
      case .salvage: report = try RecoveryReport(salvaging: path, because: error)
      }
      try self.init(inDirectory: path, options: options, recovery: report)
    }
  }

  /// Throws the damage that an earlier process found, if the store is to be salvaged.
  private static func checkNotedDamage(
    at path: String, _ options: Options
  ) throws(StoreError) {
    guard options.access == .readWrite, options.onDamage == .salvage else { return }
    if let damage = try LevelDBEngine.notedDamage(at: path) { throw .corrupt(damage) }
  }

  static func path(of directory: URL) throws(StoreError) -> String {
    guard directory.isFileURL else {
      throw .invalidArgument("\(directory.absoluteString) is not a file URL")
    }
    return directory.path(percentEncoded: false)
  }

  private convenience init(
    inDirectory path: String, options: Options, recovery: RecoveryReport? = nil
  ) throws(StoreError) {
    try options.checkRanges()
    let engine: LevelDBEngine
    switch options.access {
    case .readWrite: engine = try LevelDBEngine(at: path, options: options.engineOptions)
    case .readOnly: engine = try LevelDBEngine.readOnly(at: path, options: options.engineOptions)
    }
    try self.init(
      engine: engine, options: options, origin: .disk,
      recovery: recovery ?? engine.recovery.map(RecoveryReport.init))
  }

  /// Makes a store in an engine in memory, which must be empty.
  package convenience init(inMemory engine: any StorageEngine, options: Options) {
    precondition(options.byteBudget ?? 1 >= 1, "a byteBudget below 1")
    let context = StoreContext(engine, options: options, origin: .memory)
    self.init(context, Registry(ofNewStore: context), access: options.access)
  }

  /// Closes the store: waits for the calls under way, and releases the directory.
  ///
  /// ```swift
  /// let store = try Store(at: directory)
  /// defer {
  ///   do { try store.close() } catch { report(error, "close") }
  /// }
  /// ```
  ///
  /// Before that, entries are swept that had expired at an earlier closing, see
  /// ``Options/sweepInterval``. Afterwards every call on the store, its caches and open cursors
  /// throws ``StoreError/closed``. Closing a closed store does nothing. A store that is not closed
  /// is closed when its last reference goes, and does not sweep then; caches and cursors hold
  /// references. Work that ``run(_:)`` has not begun yet still runs.
  ///
  /// - Throws: ``StoreError/io(_:)`` if the system reports a failure; the store is closed
  ///   nevertheless.
  public func close() throws {
    defer {
      context.observations.finish()
      context.activity.close()
    }
    stopTimers()
    sendGauges()
    context.diskBudget?.end()
    context.loads.close()
    threads.endIdle()
    defer { releaseMemory() }
    // Once: the clock may call this again.
    let isFirst = !isClosing.exchange(true, ordering: .relaxed)
    let isMarkNew = isFirst && sweepAtClosing()
    context.closeNotes(isMarkNew: isMarkNew)
    try context.engine.close()
  }
}

// MARK: - Caches

extension Store {
  /// Opens a cache, or creates it.
  ///
  /// ```swift
  /// let genres = try store.cache("genres", of: [Genre].self)
  /// let byID = try store.cache("by id", of: Genre.self, keyedBy: Int.self, lifetime: .hours(6))
  /// ```
  ///
  /// Opening an open cache again, with the same types and settings, returns the same cache. See
  /// <doc:Budgets> for budgets and <doc:Migration> for schema versions.
  ///
  /// - Parameters:
  ///   - name: 1 to 255 bytes of UTF-8.
  ///   - type: The type of the values. In an app whose types belong to the main actor by default,
  ///     it must be a `nonisolated struct`.
  ///   - key: The type of the keys; `String` by default. The kind of the keys (text, integer, UUID,
  ///     bytes) can never change, unless the cache is dropped. All other settings may differ each
  ///     time the store is opened.
  ///   - lifetime: How long entries stay fresh; 7 days by default. Every read applies the current
  ///     lifetime.
  ///   - expiry: Whether reads restart lifetimes; ``Expiry/sinceSaved``, they do not, by default.
  ///   - schema: The version of `type` that is written, and the readers of older versions. Version
  ///     1 by default.
  ///   - coder: The encoding of the values; ``Coder/binary`` by default.
  ///   - byteBudget: The most bytes that the cache may hold, at least 1: keys and records. Nil, the
  ///     default, is no limit.
  ///   - memory: The memory for decoded values; the store's, ``MemoryTier/shared``, by
  ///     default.
  ///   - loading: How calls such as `value(for:loading:load:)` load values.
  ///   - overwritesNewer: Whether a save replaces an entry of a newer schema version. If false, the
  ///     default, the entry is kept and the save throws ``StoreError/newerSchema(found:known:)``.
  /// - Returns: The cache.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the name, the budget or the memory is not
  ///   allowed, if the cache is open with other types or settings, or has keys of another kind;
  ///   ``StoreError/corrupt(cache:key:file:)`` if the cache's registration is damaged;
  ///   ``StoreError/incompatible(_:)`` if a later version wrote it;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``, ``StoreError/closed``.
  /// - Complexity: One point lookup, and one append if anything has changed, with an fsync for a
  ///   new cache. When a cache first gets a budget, one scan.
  public func cache<Value: Codable & Sendable, Key: CacheKey>(
    _ name: String, of type: Value.Type, keyedBy key: Key.Type = String.self,
    lifetime: Lifetime = .days(7), expiry: Expiry = .sinceSaved,
    schema: Schema<Value> = Schema(version: 1), coder: Coder<Value> = .binary,
    byteBudget: Int? = nil, memory: MemoryTier = .shared, loading: Loading = Loading(),
    overwritesNewer: Bool = false
  ) throws -> Cache<Key, Value> {
    try Self.checkCacheName(name)
    if let byteBudget, byteBudget < 1 {
      throw StoreError.invalidArgument("a budget of \(byteBudget) bytes; at least 1 is allowed")
    }
    if case .bytes(let limit) = memory, limit < 1 {
      throw StoreError.invalidArgument("memory of \(limit) bytes; at least 1 is allowed")
    }
    try loading.checkRanges()
    let settings = CacheSettings(
      keyType: Key.self, valueType: Value.self, lifetime: lifetime, schemaVersion: schema.version,
      readerVersions: Set(schema.readers.keys), coder: coder.format, byteBudget: byteBudget,
      expiry: expiry, memory: memory, loading: loading, overwritesNewer: overwritesNewer)
    // A cache that is open already has its recent reads and its memory.
    let open = openCaches.cache(named: name)
    let wanted = CacheCore(
      name, settings, schema: schema, coder: coder, readers: Coder<Value>.readers,
      recentReads: open?.recentReads ?? context.budgets.recentReads(byteBudget: byteBudget),
      memory: open == nil ? context.memory(for: memory) : open?.memory, in: context)
    let core = try registry.withLock { registry throws(StoreError) in try registry.open(wanted) }
    return Cache(store: self, core: core)
  }

  /// Returns a cache that is open already, whatever its settings.
  ///
  /// ```swift
  /// let genres = try store.openCache("genres", of: [Genre].self)
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name that it was opened with.
  ///   - type: The type of its values.
  ///   - key: The type of its keys; `String` by default.
  /// - Returns: The cache; nil if it is not open.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if it is open with other types,
  ///   ``StoreError/closed``.
  /// - Complexity: One lookup in memory.
  public func openCache<Value: Sendable, Key: CacheKey>(
    _ name: String, of type: Value.Type, keyedBy key: Key.Type = String.self
  ) throws -> Cache<Key, Value>? {
    try context.engine.checkOpen()
    guard let open = openCaches.cache(named: name) else { return nil }
    guard let core = open as? CacheCore<Value>, open.settings.keyType == key else {
      throw StoreError.invalidArgument(
        """
        cache "\(name)" is open with keys of \(open.settings.keyType) and values of \
        \(open.settings.valueType); this call asks for keys of \(key) and values of \(type)
        """)
    }
    return Cache(store: self, core: core)
  }

  static func checkCacheName(_ name: String) throws(StoreError) {
    guard (1...255).contains(name.utf8.count) else {
      throw .invalidArgument("a cache name of \(name.utf8.count) bytes; 1 to 255 are allowed")
    }
  }

  /// Drops a cache, open or not: removes all of its entries and its settings.
  ///
  /// ```swift
  /// try store.drop(cache: "thumbnails")     // of an earlier version of the program
  /// ```
  ///
  /// Afterwards the name is free: a cache that is opened under it is empty and new, and may have
  /// keys of another kind. A `Cache` that was open throws ``StoreError/invalidArgument(_:)`` from
  /// every call. Its observers get ``Change/Kind/cleared`` and their sequences end. A cursor that
  /// was created before may return entries that are not deleted yet.
  ///
  /// The time does not depend on the number of entries. Their rows are deleted in slices, now and
  /// each time the store is opened. A save that runs on another thread at the same time counts as
  /// earlier.
  ///
  /// - Parameter name: The name of the cache, by its bytes: another Unicode spelling of the same
  ///   text is another name.
  /// - Returns: False if the store has no such cache. Nothing was written then.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` if the cache's registration is damaged, and
  ///   ``StoreError/incompatible(_:)`` if a later version wrote it: nothing was changed.
  ///   ``StoreError/diskFull`` or ``StoreError/io(_:)`` if the write failed: the cache then exists
  ///   with all of its entries, or is dropped. ``StoreError/writesDisabled(cause:)`` after an
  ///   earlier failure that persists, ``StoreError/readOnly(cause:)``, ``StoreError/closed``:
  ///   nothing was written.
  /// - Complexity: One point lookup, one append and one fsync; then at most 10,000 deletions.
  @discardableResult public func drop(cache name: String) throws -> Bool {
    try requireWritable()
    try context.engine.checkOpen()
    let dropped = try registry.withLock { registry throws(StoreError) in try registry.drop(name) }
    guard dropped.isDropped else { return false }
    context.observations.endDropped()
    if let cache = dropped.cache {
      context.counts.ofCache(name).reads.keep(hits: cache.memory?.hits ?? 0)
    }
    reclaim(atOpen: false)
    return true
  }
}

// MARK: - Writing

extension Store {
  /// Changes entries of any of the store's caches together, completely or not at all.
  ///
  /// ```swift
  /// try store.write { batch in
  ///   batch.save(a, for: "a", in: genres)
  ///   batch.remove("b", from: genres)
  /// }
  /// ```
  ///
  /// If a change is impossible (a value cannot be encoded, a key is over its limit), the changes
  /// after it are skipped, nothing is written, and its error is thrown here.
  ///
  /// - Parameters:
  ///   - durability: The failures that the changes survive; the store's ``Options/durability`` by
  ///     default.
  ///   - body: Fills the batch. If it throws, nothing is written. No lock is held meanwhile. The
  ///     changes may take 64 MiB together.
  /// - Returns: The result of `body`, once everything is written.
  /// - Throws: The error of `body`, or the errors of
  ///   ``Cache/save(_:for:lifetime:validator:tags:durability:)``.
  ///   ``StoreError/conflict(cache:key:tries:)`` if a condition of ``Batch/require(_:_:in:)`` does
  ///   not hold: nothing was written.
  /// - Complexity: One append, shared with concurrent writers; one fsync if a cache is cleared or
  ///   the changes are to survive power loss, and two more after a log was full.
  public func write<R, E: Error>(
    durability: Durability? = nil, _ body: (inout Batch) throws(E) -> R
  ) throws -> R {
    // Generic over the error: Swift 6.3.1 crashes when it makes `any Error` of a typed one.
    var batch = Batch(store: self)
    let result = try body(&batch)
    try commit(batch, durability)
    return result
  }

  /// Checks the optional fields of an entry of `core`, and registers the cache with them.
  ///
  /// Called before the entry is written, and under no lock.
  func fields(
    of core: some OpenCache, lifetime: Lifetime?, validator: Validator?, tags: [String],
    savedAt: Date
  ) throws(StoreError) -> Record.Fields {
    try validator?.checkLimits()
    var fields = Record.Fields(validator: validator)
    var features: EntryFeatures = []
    if let lifetime {
      fields.lifetime = OwnLifetime(lifetime, from: savedAt)
      features.insert(.ownLifetimes)
    }
    if !tags.isEmpty {
      fields.tags = try Tags(tags)
      features.insert(.tags)
    }
    guard !features.isSubset(of: core.features) else { return fields }
    try registry.withLock { registry throws(StoreError) in try registry.add(features, to: core) }
    return fields
  }

  /// Waits until every write that was acknowledged before is safe from power loss.
  ///
  /// ```swift
  /// try genres.save(list, for: "all")
  /// try store.flush()   // everything saved so far survives a power loss
  /// ```
  ///
  /// - Throws: ``StoreError/diskFull`` or ``StoreError/io(_:)`` if the fsync failed;
  ///   ``StoreError/writesDisabled(cause:)``, ``StoreError/closed``.
  /// - Complexity: One append and one fsync, shared with concurrent writers; two more fsyncs after
  ///   a log was full.
  public func flush() throws {
    try context.engine.flush()
  }

  /// The number of times that a batch with conditions is tried.
  private static let tries = 100

  private func commit(
    _ batch: consuming Batch, _ durability: Durability?
  ) throws(StoreError) {
    if let failure = batch.failure { throw failure }
    let (clearings, changes, requirements) = (batch.clearings, batch.changes, batch.requirements)
    var write = batch.write
    for attempt in 1...Self.tries {
      write.writeCountBeforeReading = context.engine.writeCount
      for requirement in requirements {
        guard try requirement.add(&write) else { throw requirement.conflict(tries: attempt) }
      }
      if try commit(&write, clearing: clearings, durability) {
        changes.count()
        if !clearings.isEmpty { reclaim(atOpen: false) }
        return
      }
      // A record has changed since it was read; the condition may hold nevertheless.
      write.removeRequirements()
    }
    if let requirement = requirements.first { throw requirement.conflict(tries: Self.tries) }
  }

  /// Returns whether all conditions held.
  private func commit(
    _ write: inout WriteBatch, clearing clearings: [Batch.Clearing], _ durability: Durability?
  ) throws(StoreError) -> Bool {
    guard !clearings.isEmpty else {
      return try context.commit(&write, durability).failed.isEmpty
    }
    // Before the lock: the clock may call the store.
    let now = context.clock.now()
    return try registry.withLock { registry throws(StoreError) in
      try registry.commit(&write, clearing: clearings, at: now)
    }
  }

  /// A new id for a cache that is about to be cleared.
  func newCacheID() throws(StoreError) -> UInt64 {
    try registry.withLock { registry throws(StoreError) in try registry.takeID() }
  }

  /// Deletes all rows that cleared and dropped caches have left.
  func reclaimAll() throws(StoreError) {
    var isDone = false
    while !isDone {
      isDone = try registry.withLock { registry throws(StoreError) in
        try registry.reclaim(atOpen: false)
        return !registry.hasReclaimable
      }
    }
  }

  /// Deletes a slice of the rows that cleared and dropped caches have left.
  private func reclaim(atOpen: Bool) {
    registry.withLock { registry in
      do throws(StoreError) {
        try registry.reclaim(atOpen: atOpen)
      } catch {
        // The call that led here, which opens, clears or drops, has succeeded. The rows stay marked
        // for the next opening, and reads or writes that meet the same failure throw it.
      }
    }
    if !atOpen { context.engine.collectSegmentsSoon() }
  }
}

// MARK: - Sweeping

extension Store {
  /// Runs `body` with the state of the sweeps, one sweep at a time.
  func withSweeper<R>(
    _ body: (inout Sweeper) throws(StoreError) -> R
  ) throws(StoreError) -> R {
    try sweeper.withLock { sweeper throws(StoreError) in try body(&sweeper) }
  }

  /// Sweeps, unless a sweep is under way.
  func withSweeperIfAvailable(_ body: (inout Sweeper) -> Void) {
    sweeper.withLockIfAvailable { body(&$0) }
  }

  /// The caches that are open.
  var allOpenCaches: [CacheName: any OpenCache] { openCaches.all }

  /// Runs `body` with the registry; no cache is opened meanwhile.
  func withRegistry<R>(
    _ body: (borrowing Registry) throws(StoreError) -> R
  ) throws(StoreError) -> R {
    try registry.withLock { registry throws(StoreError) in try body(registry) }
  }

  private func sweepInBackground(every interval: Duration, by trigger: IntervalTimer) {
    let reading = ClockWatch.Reading(of: context.clock)
    withSweeperIfAvailable { $0.watch(reading) }
    let end = trigger(interval) { [weak self] in self?.sweepUnasked() }
    endTimers.withLock { $0.append(end) }
  }

  private func publishStatistics(by trigger: IntervalTimer) {
    let publisher = StatisticsPublisher(for: context)
    publisher.publish(statistics)
    let end = trigger(.seconds(1)) { [weak self] in
      if let self { publisher.publish(statistics) }
    }
    endTimers.withLock { $0.append(end) }
  }

  private func stopTimers() {
    let ends = endTimers.withLock { ends in
      defer { ends = [] }
      return ends
    }
    for end in ends { end() }
  }
}
