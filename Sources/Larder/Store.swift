public import Foundation
package import LarderEngine
import Synchronization

/// An embedded key-value store: one directory, in which named caches keep typed values for as long
/// as their lifetimes say.
///
/// ```swift
/// let store = try Store(at: directory)                     // opens or creates
/// let genres = try store.cache("genres", of: [Genre].self) // fresh for 7 days
/// try genres.save(list, for: "all")
/// let list = try genres.value(for: "all")
/// ```
///
/// - Threads: a store and its caches may be used from any thread at once. Calls are synchronous.
/// - Owner: one `Store` at a time has a directory open, in one process. Whoever comes second gets
///   ``StoreError/locked(pid:)``.
/// - Atomicity: each call, and each ``write(durability:_:)``, takes effect whole or not at all,
///   after a crash of the process too.
/// - Durability: an acknowledged write survives a crash or kill of the process. A power loss may
///   lose the last ones, unless ``Durability/powerLoss`` or ``flush()`` asks for more.
/// - Errors: a store, its caches and their cursors throw ``StoreError`` and nothing else, apart
///   from what your own closure throws in ``write(durability:_:)``. Each method names its cases.
///
/// It is not a database: there are no queries but by key, key range and prefix, and no
/// transactions that read.
public final class Store: Sendable {
  let context: StoreContext
  /// What opening had to set aside: the end of a log that a power loss tore off, or a damaged
  /// store; nil when nothing.
  public let recovery: RecoveryReport?
  private let access: Access
  private let registry: Mutex<Registry>
  private let openCaches: OpenCaches
  private let sweeper = Mutex(Sweeper())
  /// Ends the sweeps in the background; nil when there are none.
  private let endSweeps = Mutex<(@Sendable () -> Void)?>(nil)

  private init(
    _ context: StoreContext, _ registry: consuming Registry, access: Access,
    recovery: RecoveryReport? = nil
  ) {
    self.context = context
    self.access = access
    self.recovery = recovery
    openCaches = registry.open
    self.registry = Mutex(registry)
  }

  deinit {
    endSweepsInBackground()
    context.observations.finish()
  }

  /// Opens the store in `engine`, which may hold one already.
  package convenience init(
    engine: any StorageEngine, options: Options = Options(), origin: Origin,
    recovery: RecoveryReport? = nil
  ) throws(StoreError) {
    try options.checkRanges()
    let context = StoreContext(engine, options: options, origin: origin)
    let registry = try Registry(of: context, access: options.access)
    self.init(context, registry, access: options.access, recovery: recovery)
    guard access == .readWrite else { return }
    // Weak: open caches hold the engine.
    engine.whenReopened { [weak openCaches, weak context] read in
      guard let openCaches, let context else { return true }
      defer { context.budgets.accounting.readAgain(openCaches, by: read) }
      return openCaches.readIDs(by: read)
    }
    try withRegistry { registry throws(StoreError) in try context.budgets.resume(registry) }
    reclaim(atOpen: true)
    if let seconds = options.sweepInterval {
      sweepInBackground(every: seconds, by: options.sweepTrigger)
    }
  }

  /// Opens the store in a directory, or creates it there.
  ///
  /// A new store is made in a directory that is missing or empty. A directory with anything else in
  /// it, another program's LevelDB for one, is refused and nothing in it is touched. Files are
  /// readable by their owner only.
  ///
  /// - Parameters:
  ///   - directory: A `file:` URL. Its parent must exist. Symbolic links are followed: a directory
  ///     is the same one by whatever path it is reached.
  ///   - options: See ``Options``.
  /// - Throws: ``StoreError/locked(pid:)`` when it is open elsewhere;
  ///   ``StoreError/incompatible(_:)`` when it is not a store, or a newer one;
  ///   ``StoreError/corrupt(cache:key:file:)`` when the store's own bookkeeping is damaged;
  ///   ``StoreError/invalidArgument(_:)`` for an option outside its range; ``StoreError/io(_:)``;
  ///   ``StoreError/diskFull`` when the disk is full and the store's reserve is not enough to open
  ///   it: with ``Options/access`` set to ``Access/readOnly`` it can be read. Nothing that was
  ///   there is changed or renamed.
  /// - Complexity: Reads LevelDB's log, at most two write buffers, and the end of each file; and
  ///   deletes up to 10,000 rows of caches that were cleared. With ``Access/readOnly``, a hard link
  ///   or a copy of each file.
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

  /// Throws the damage that was met in a store before, if it is to be salvaged.
  private static func checkNotedDamage(
    at path: String, _ options: Options
  ) throws(StoreError) {
    guard options.access == .readWrite, options.onDamage == .salvage else { return }
    do throws(EngineError) {
      if let damage = try LevelDBEngine.notedDamage(at: path) { throw .corrupt(damage) }
    } catch {
      throw StoreError(error)
    }
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
    do throws(EngineError) {
      switch options.access {
      case .readWrite: engine = try LevelDBEngine(at: path, options: options.engineOptions)
      case .readOnly: engine = try LevelDBEngine.readOnly(at: path, options: options.engineOptions)
      }
    } catch {
      throw StoreError(error)
    }
    try self.init(
      engine: engine, options: options, origin: .disk,
      recovery: recovery ?? engine.recovery.map(RecoveryReport.init))
  }

  /// Makes a store that lives in memory and is gone with its last reference.
  ///
  /// It behaves as one on disk. Applications fall back on it when their directory cannot be opened.
  ///
  /// - Parameter options: See ``Options``; of them only the clock and the budget have a meaning
  ///   here. A budget below 1 is a programmer's error.
  /// - Returns: An empty store.
  public static func inMemory(options: Options = Options()) -> Store {
    precondition(options.byteBudget ?? 1 >= 1, "a byteBudget below 1")
    let context = StoreContext(InMemoryEngine(), options: options, origin: .memory)
    return Store(context, Registry(ofNewStore: context), access: options.access)
  }

  /// Closes the store, waits for the calls that are under way, and lets go of its directory.
  ///
  /// From then on every call on it or its caches throws ``StoreError/closed``, and so does every
  /// cursor that is still open. Closing twice does nothing. A store that is not closed is closed
  /// with its last reference: caches and cursors hold one each.
  ///
  /// - Throws: ``StoreError/io(_:)`` when the system reports a failure; it is closed all the same.
  public func close() throws {
    defer { context.observations.finish() }
    endSweepsInBackground()
    do {
      try context.engine.close()
    } catch {
      throw StoreError(error)
    }
  }
}

// MARK: - Caches

extension Store {
  /// Opens a cache, or creates it.
  ///
  /// Asking again for an open cache, with the same types and settings, gives the same cache. What
  /// a budget means is told in <doc:Budgets>, and what happens to entries of a newer program in
  /// <doc:Migration>.
  ///
  /// - Parameters:
  ///   - name: 1 to 255 bytes of UTF-8.
  ///   - type: The type of the values. In an app whose types belong to the main actor by default,
  ///     it must be a `nonisolated struct`.
  ///   - key: The type of the keys; `String` by default. A cache keeps the kind of its keys
  ///     (text, integer, UUID, bytes) for good.
  ///   - lifetime: How long entries stay fresh; 7 days by default. It is judged at every read and
  ///     may be another one each time the store is opened.
  ///   - schema: Which version of `type` is written, and how older ones are read. Version 1 by
  ///     default.
  ///   - coder: How values become bytes; ``Coder/binary`` by default. It may be another one each
  ///     time the store is opened.
  ///   - byteBudget: How many bytes the cache may hold, at least 1: keys, records, and their rows
  ///     in the index. Nil, the default, is no limit. It may be another one each time the store is
  ///     opened.
  ///   - overwritesNewer: Whether a save replaces an entry of a newer schema version. False, the
  ///     default, keeps the entry, and the save throws ``StoreError/newerSchema(found:known:)``. It
  ///     may be another one each time the store is opened.
  /// - Returns: The cache.
  /// - Throws: ``StoreError/invalidArgument(_:)`` when the name or the budget is not allowed, when
  ///   the cache is open with other types or settings, or has keys of another kind;
  ///   ``StoreError/corrupt(cache:key:file:)`` when what the store remembers of the cache is
  ///   damaged; ``StoreError/incompatible(_:)`` when it was written by a later version;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``, ``StoreError/closed``.
  /// - Complexity: One point lookup, and one append if anything is new: with an fsync for a new
  ///   cache. The first time that it has a budget, one scan, and an append for each 256 entries
  ///   that have no row in the index.
  public func cache<Value: Codable & Sendable, Key: CacheKey>(
    _ name: String, of type: Value.Type, keyedBy key: Key.Type = String.self,
    lifetime: Lifetime = .days(7), schema: Schema<Value> = Schema(version: 1),
    coder: Coder<Value> = .binary, byteBudget: Int? = nil, overwritesNewer: Bool = false
  ) throws -> Cache<Key, Value> {
    guard (1...255).contains(name.utf8.count) else {
      throw StoreError.invalidArgument(
        "a cache name of \(name.utf8.count) bytes; 1 to 255 are allowed")
    }
    if let byteBudget, byteBudget < 1 {
      throw StoreError.invalidArgument("a budget of \(byteBudget) bytes; at least 1 is allowed")
    }
    let configuration = CacheConfiguration(
      keyType: Key.self, lifetime: lifetime, schema: schema, coder: coder,
      readers: Coder<Value>.readers, byteBudget: byteBudget, overwritesNewer: overwritesNewer)
    // A cache that is open already has its marks.
    let marks =
      openCaches.cache(named: name)?.marks ?? context.budgets.marks(byteBudget: byteBudget)
    let wanted = CacheCore(name, configuration, marks: marks, in: context)
    let core = try registry.withLock { registry throws(StoreError) in try registry.open(wanted) }
    return Cache(store: self, core: core)
  }
}

// MARK: - Writing

extension Store {
  /// Changes entries of any of the store's caches together: all of it takes effect, or nothing.
  ///
  /// ```swift
  /// try store.write { batch in
  ///   batch.save(a, for: "a", in: genres)
  ///   batch.remove("b", from: genres)
  /// }
  /// ```
  ///
  /// The first change that is not possible (a value that cannot be encoded, a key over its limit)
  /// is kept, the ones after it are passed over, nothing is written, and it is thrown here.
  ///
  /// - Parameters:
  ///   - durability: What the changes survive; nil, the default, leaves it to the store's
  ///     ``Options/durability``.
  ///   - body: Fills the batch. When it throws, nothing is written. Nothing is locked meanwhile.
  ///     Together the changes take 64 MiB at most.
  /// - Returns: What `body` returns, once everything is written.
  /// - Throws: What `body` throws, or as ``Cache/save(_:for:durability:)``.
  /// - Complexity: One append, shared with others who write at once; an fsync too if a cache is
  ///   cleared or the changes are to survive power loss, and two more after a log was full.
  public func write<R, E: Error>(
    durability: Durability? = nil, _ body: (inout Batch) throws(E) -> R
  ) throws -> R {
    // Generic over the error: Swift 6.3.1 crashes when it makes `any Error` of a typed one.
    var batch = Batch(store: self)
    let result = try body(&batch)
    try commit(batch, durability)
    return result
  }

  /// Waits until every write that was acknowledged before is safe from power loss.
  ///
  /// - Throws: ``StoreError/diskFull`` or ``StoreError/io(_:)`` when the system cannot say so;
  ///   ``StoreError/writesDisabled(cause:)``, ``StoreError/closed``.
  /// - Complexity: One append and one fsync, shared with others who wait; two more fsyncs after a
  ///   log was full.
  public func flush() throws {
    try context.flush()
  }

  private func commit(
    _ batch: consuming Batch, _ durability: Durability?
  ) throws(StoreError) {
    if let failure = batch.failure { throw failure }
    let clearings = batch.clearings
    let changes = batch.changes
    var write = batch.write
    guard !clearings.isEmpty else {
      try context.commit(&write, durability)
      changes.count()
      return
    }
    // Before the lock: the clock may call the store.
    let now = context.clock.now()
    try registry.withLock { registry throws(StoreError) in
      try registry.commit(&write, clearing: clearings, at: now)
    }
    changes.count()
    reclaim(atOpen: false)
  }

  /// A number for a cache that is about to be cleared.
  func newCacheID() -> UInt64 { registry.withLock { $0.takeID() } }

  /// Gives back a slice of what cleared caches left behind.
  private func reclaim(atOpen: Bool) {
    registry.withLock { registry in
      do throws(StoreError) {
        try registry.reclaim(atOpen: atOpen)
      } catch {
        // What was asked for, opening or clearing, is done. The rows stay marked, and the next
        // opening tries again; whatever is wrong, a read or write that it concerns will say so.
      }
    }
  }
}

// MARK: - Reading only

extension Store {
  /// Throws when the store was opened for reading only.
  ///
  /// Writes throw it by themselves; this is for what may have nothing to write.
  func requireWritable() throws(StoreError) {
    guard access == .readWrite else { throw .readOnly(cause: "it was opened for reading only") }
  }
}

// MARK: - Sweeping

extension Store {
  /// Runs `body` with what sweeps know, one sweep at a time.
  func withSweeper<R>(
    _ body: (inout Sweeper) throws(StoreError) -> R
  ) throws(StoreError) -> R {
    try sweeper.withLock { sweeper throws(StoreError) in try body(&sweeper) }
  }

  /// The same, unless a sweep is under way.
  func withSweeperIfAvailable(_ body: (inout Sweeper) -> Void) {
    sweeper.withLockIfAvailable { body(&$0) }
  }

  /// The caches that are open.
  var allOpenCaches: [CacheName: any OpenCache] { openCaches.all }

  /// Runs `body` with the registry, so that no cache is opened meanwhile.
  func withRegistry<R>(
    _ body: (borrowing Registry) throws(StoreError) -> R
  ) throws(StoreError) -> R {
    try registry.withLock { registry throws(StoreError) in try body(registry) }
  }

  private func sweepInBackground(every seconds: Double, by trigger: SweepTrigger) {
    let reading = ClockWatch.Reading(of: context.clock)
    withSweeperIfAvailable { $0.watch(reading) }
    let end = trigger(seconds) { [weak self] in self?.sweepUnasked() }
    endSweeps.withLock { $0 = end }
  }

  private func endSweepsInBackground() {
    let end = endSweeps.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }
}
