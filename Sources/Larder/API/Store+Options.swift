#if Logging
  public import Logging
#endif

extension Store {
  /// The options for opening a store.
  ///
  /// They cannot be changed while the store is open.
  public struct Options: Sendable {
    // MARK: Correctness

    /// The clock that stamps entries and decides when they expire.
    ///
    /// The default is the system's clock, ``SystemClock``.
    public var clock: any WallClock = SystemClock()

    /// Whether a missing store is created.
    ///
    /// The default is true. If false, opening a missing store throws ``StoreError/io(_:)`` and
    /// creates nothing.
    public var createIfMissing = true

    /// The durability of writes that do not specify one.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.durability = .powerLoss   // an fsync a save, shared by saves at the same time
    /// ```
    ///
    /// The default is ``Durability/processCrash``.
    public var durability = Durability.processCrash

    /// Whether the store is opened for writing, or for reading only.
    ///
    /// The default is ``Access/readWrite``. With ``Access/readOnly``, opening a missing store
    /// throws ``StoreError/io(_:)``, and ``onDamage``, ``byteBudget``, ``diskBudget`` and
    /// ``sweepInterval`` have no effect.
    public var access = Access.readWrite

    /// How opening handles a damaged store.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.onDamage = .recreate   // everything can be loaded again
    /// ```
    ///
    /// The default is ``DamagePolicy/fail``. A damaged record alone does not make opening fail.
    public var onDamage = DamagePolicy.fail

    // MARK: Deleting entries

    /// The maximum size of all caches of the store together, in bytes.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.byteBudget = 64 << 20   // of all caches together
    /// let store = try Store(at: directory, options: options)
    /// ```
    ///
    /// The default is nil, no limit; otherwise at least 1. Keys and records count towards it; see
    /// <doc:Budgets>. It applies to a store in memory, too.
    ///
    /// The first time a store is opened with a budget, the heads of all its entries are read to be
    /// counted. Once something was evicted, the order of eviction takes 40 to 50 bytes of memory
    /// for each entry with a short key.
    public var byteBudget: Int?

    /// The most bytes that the store's files should take.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.diskBudget = 512 << 20   // files, not entries
    /// let store = try Store(at: directory, options: options)
    /// ```
    ///
    /// The default is nil, no limit; otherwise at least 4 MiB. Files take more room than the
    /// entries in them: values that were overwritten or removed stay until LevelDB compacts its
    /// tables, or a segment is collected. Before the files take all of the budget, a thread in the
    /// background makes them smaller: it collects segments, compacts, and if that is not enough,
    /// evicts entries of all caches, as ``byteBudget`` does. No save is refused, but while saves
    /// are faster than that, each waits up to a tenth of a second. ``Statistics/disk`` tells what
    /// was done; see <doc:Budgets> for what it costs.
    ///
    /// Entries are counted as for ``byteBudget``, and a store can have both. The write buffer,
    /// table files and segments are a sixteenth of the budget at most. It has no effect on a store
    /// in memory, nor with ``Access/readOnly``.
    public var diskBudget: Int?

    /// How often the store deletes expired entries by itself; nil for never.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.sweepInterval = nil   // only `sweep()` and `validate()` delete expired entries
    /// ```
    ///
    /// The default is an hour; 1 second to 31,536,000 seconds, a year, are allowed. With nil,
    /// expired entries are deleted only when ``Store/sweep()`` or ``Cache/validate(maxAge:)`` is
    /// called.
    ///
    /// A sweep in the background runs on its own thread and deletes at most about 10,000 entries.
    /// Within ten minutes after the store was opened or the date was changed, it deletes nothing,
    /// because a deletion for a wrong date cannot be undone. For programs that do not run for so
    /// long, ``Store/close()`` deletes as much, once an interval, of what had expired when the
    /// store was closed an interval ago or earlier. A store in memory is swept only when that is
    /// asked for.
    public var sweepInterval: Duration? = .seconds(3600)

    /// Triggers the sweeps in the background.
    ///
    /// The default is the system's timer.
    package var sweepTrigger: IntervalTimer = systemIntervalTimer

    // MARK: Loading

    /// The timer of timeouts and repetitions of loads.
    ///
    /// The default is the system's.
    package var loadTimer: LoadTimer = systemLoadTimer

    /// Returns random numbers from 0 to 1, without 1, that spread loads.
    package var random: @Sendable () -> Double = { .random(in: 0..<1) }

    // MARK: Counting

    /// Whether the store publishes its statistics for `kvinspect` while it is open.
    ///
    /// The default is false. If true, the file `LARDER.statistics` in the store's directory has
    /// what ``Store/statistics`` returns, with the process id, the time and the time since the
    /// store was opened. It contains the names of caches, and no keys or values.
    ///
    /// A timer compares the statistics once a second, and replaces the file if they have changed.
    /// That takes some microseconds for each cache and a write of some hundred bytes, which is not
    /// synced, on a thread of its own. Reads and writes take no longer. If the file cannot be
    /// written, for example on a full disk, the timer tries again a second later.
    ///
    /// Closing the store removes the file. A killed process leaves it, and `kvinspect` says so. A
    /// store in memory, and one that is opened with ``Access/readOnly``, publishes nothing.
    public var publishesStatistics = false

    /// Hears of reads, loads, and deletions that the store makes by itself, each with its key.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.eventHandler = { event in
    ///   if case .loaded(let time, let error?) = event.kind { report(event.key, time, error) }
    /// }
    /// ```
    ///
    /// The default is nil. The handler runs on the thread of the call before the call returns, and
    /// may run on several threads at once. It must return soon and not call the store, which may
    /// hold locks. With a handler, each event also costs the time to spell its key. ``CacheEvent``
    /// names other ways to see the same.
    public var eventHandler: (@Sendable (CacheEvent) -> Void)?

    /// Whether other processes of the same user can give the open store commands, with
    /// `kvinspect --live`.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.control = true   // then: kvinspect invalidate DIRECTORY user-7 --live
    /// ```
    ///
    /// The default is false. If true, the store listens on a Unix socket, the file `LARDER.control`
    /// in its directory, which only its user can connect to. It removes entries, invalidates tags,
    /// sweeps, compacts, and releases memory, as calls of the program do: what is in memory and
    /// what observers see is right. It returns no values. Up to 16 commands run at once, on the
    /// store's threads. Between commands no thread runs. See <doc:Inspecting>.
    ///
    /// Opening throws ``StoreError/io(_:)`` if the directory can have no socket, and
    /// ``StoreError/diskFull`` on a full disk. On Apple's systems, the directory's path is limited
    /// to 84 bytes. Suspending or closing the store removes the socket. A killed process leaves it,
    /// and connections to it are refused. The option has no effect on a store in memory, nor with
    /// ``Access/readOnly``.
    public var control = false

    /// Triggers the publication.
    ///
    /// The default is the system's timer.
    package var statisticsTrigger: IntervalTimer = systemIntervalTimer

    // MARK: Logging

    #if Logging
      /// The logger of the store, with the package trait `Logging`; see <doc:Counting>.
      ///
      /// The default is a logger of the program's `LoggingSystem` with the label "larder". Its
      /// handler must not call the store.
      public var logger = Logger(label: "larder")

      /// The time from which on a load is logged as slow.
      ///
      /// The default is 5 seconds.
      public var slowLoad = Duration.seconds(5)
    #endif

    // MARK: Performance

    /// The size of the write buffer in memory, in bytes; a full buffer is written to a sorted file.
    ///
    /// The default is 4 MiB; 64 KiB to 1 GiB are allowed.
    ///
    /// A larger buffer makes bulk loads faster, and opening after a crash slower. At most two
    /// buffers exist at once. The size is limited to a 64th of the space that is free on the volume
    /// when the store is opened.
    public var writeBufferBytes = 4 << 20

    /// The size of the block cache in memory, in bytes; it holds uncompressed blocks of files.
    ///
    /// The default is 8 MiB; 0 disables the cache. There is no upper limit.
    public var blockCacheBytes = 8 << 20

    /// The memory for decoded values, in bytes, which all caches of the store share.
    ///
    /// ```swift
    /// var options = Store.Options()
    /// options.memoryBytes = 64 << 20   // decoded values of all caches
    /// ```
    ///
    /// The default is 8 MiB; 0 disables it. There is no upper limit. A value that is in memory is
    /// returned without a read from disk; see ``MemoryTier``. A store in memory does not use it.
    public var memoryBytes = 8 << 20

    /// Whether LevelDB's blocks and large encoded values are compressed with Snappy.
    ///
    /// The default is true; turn it off if values are hard to compress.
    ///
    /// LevelDB compresses blocks in the background. A value that would be kept outside LevelDB, see
    /// ``Advanced/separatedValueBytes``, is compressed by the save and decompressed by each read
    /// from disk, unless its coder is `Coder.bytes` or that would save less than an eighth. The
    /// option may differ each time the store is opened: values are read wherever and however they
    /// were saved. See <doc:LargeValues>.
    public var compression = true

    #if Encryption
      /// The key that seals values and validators on disk, with the package trait `Encryption`.
      ///
      /// ```swift
      /// options.encryption = .key(id: "2026", key)
      /// ```
      ///
      /// The default is nil. Opening a store that is not sealed with a key seals what is saved from
      /// then on; see <doc:Encrypting> for what stays readable, and for a change of the key. Values
      /// in memory are decoded and plain, so the option has no effect on a store in memory.
      ///
      /// Opening throws ``StoreError/wrongKey(found:given:)`` if the store is sealed with another
      /// key, or with one and the option is nil. Nothing was changed then.
      public var encryption: Encryption?

      /// Whether a sealed store is opened without its key, for tools that read and save no values.
      package var leavesSealed = false
    #endif

    /// Options for stores of many gigabytes, and for programs that mostly scan.
    ///
    /// The defaults suit other stores.
    public var advanced = Advanced()

    /// Creates the default options.
    public init() {}
  }
}

extension Store.Options {
  /// Sizes of the files of a store.
  ///
  /// ```swift
  /// var options = Store.Options()
  /// options.advanced.maxFileBytes = 16 << 20   // fewer files, for a store of 100 GB
  /// ```
  public struct Advanced: Sendable {
    /// The size of a block, in bytes before compression; a block is the unit of reads from disk.
    ///
    /// The default is 4 KiB; 1 KiB to 4 MiB are allowed. Larger blocks make scans faster, and reads
    /// of single entries slower.
    public var blockBytes = 4 << 10

    /// The maximum size of a table file, in bytes.
    ///
    /// The default is 2 MiB; 1 MiB to 1 GiB are allowed.
    ///
    /// Larger files mean fewer files and longer compactions.
    public var maxFileBytes = 2 << 20

    /// The size in bytes from which on an encoded value is kept outside LevelDB, in a segment; nil
    /// keeps all values in LevelDB.
    ///
    /// The default is 4 KiB; at least 1 is allowed.
    ///
    /// LevelDB writes a value again at each of its levels. A value in a segment is written once,
    /// and copied when half of its segment is no longer needed. A value that ``compression`` makes
    /// smaller than this size is kept in LevelDB. The option may differ each time the store is
    /// opened: values are read wherever they are. A store in memory has no segments. See
    /// <doc:LargeValues>.
    ///
    /// - Important: A store that has segments cannot be opened by versions of this library that do
    ///   not know them.
    public var separatedValueBytes: Int? = 4 << 10

    /// The maximum number of open files.
    ///
    /// The default is 1,000; 74 to 50,000 are allowed.
    ///
    /// A store that is much larger than this number times ``maxFileBytes`` closes and opens files
    /// while it is read. The process may need a higher limit for open files.
    public var maxOpenFiles = 1000

    /// Creates the default options.
    public init() {}
  }
}

extension Store.Options {
  /// The allowed sweep intervals; a system timer counts nanoseconds in 64 bits.
  private static let sweepIntervals = Duration.seconds(1)...(.seconds(31_536_000))

  /// Throws ``StoreError/invalidArgument(_:)`` if an option is outside its range.
  func checkRanges() throws(StoreError) {
    if let byteBudget, byteBudget < 1 {
      throw .invalidArgument("byteBudget is \(byteBudget), outside 1 to \(Int.max)")
    }
    if let diskBudget, diskBudget < 4 << 20 {
      throw .invalidArgument("diskBudget is \(diskBudget), outside 4194304 to \(Int.max)")
    }
    if memoryBytes < 0 {
      throw .invalidArgument("memoryBytes is \(memoryBytes), outside 0 to \(Int.max)")
    }
    if let sweepInterval, !Self.sweepIntervals.contains(sweepInterval) {
      throw .invalidArgument(
        "sweepInterval is \(sweepInterval), outside 1 to 31,536,000 seconds")
    }
    if let bytes = advanced.separatedValueBytes, bytes < 1 {
      throw .invalidArgument(
        "advanced.separatedValueBytes is \(bytes), outside 1 to \(Int.max)")
    }
    #if Encryption
      try encryption?.check()
    #endif
    try engineOptions.checkRanges()
  }

  /// The size in bytes from which on a payload is compressed; `Int.max` for none.
  func compressedFrom(isSealed: Bool) -> Int {
    #if Encryption
      if isSealed, encryption?.compressesValues != true { return .max }
    #endif
    return compression ? advanced.separatedValueBytes ?? .max : .max
  }

  /// The settings of the engine.
  package var engineOptions: LevelDBOptions {
    var options = LevelDBOptions()
    options.createIfMissing = createIfMissing
    options.stamp = Record.stamp
    options.separation = Record.separation(from: advanced.separatedValueBytes)
    options.writeBufferBytes = writeBufferBytes
    options.blockCacheBytes = blockCacheBytes
    options.compression = compression
    options.blockBytes = advanced.blockBytes
    options.maxFileBytes = advanced.maxFileBytes
    options.maxOpenFiles = advanced.maxOpenFiles
    if let part = diskBudget.map({ $0 / 16 }) {
      options.writeBufferBytes = min(options.writeBufferBytes, part)
      options.maxFileBytes = min(options.maxFileBytes, max(part, 1 << 20))
      options.segmentBytes = min(options.segmentBytes, part)
    }
    return options
  }
}

/// How a store is opened: for reading and writing, or for reading only.
public enum Access: Sendable {
  /// For reading and writing. Only one `Store` at a time can have the directory open.
  case readWrite

  /// For reading a snapshot that is taken when the store is opened.
  ///
  /// The snapshot consists of hard links to the store's files, or copies of them, in a temporary
  /// directory, or in memory if there is no space on disk. The store's directory is not changed or
  /// locked. So this opens a store that another process has open, on a full disk, or on read-only
  /// media. Later writes of other processes are not visible until the store is opened again.
  ///
  /// Writes throw ``StoreError/readOnly(cause:)``, and nothing is swept. A cache that the store
  /// does not contain is empty.
  case readOnly
}

/// How opening handles a damaged store.
public enum DamagePolicy: Sendable {
  /// Throws ``StoreError/corrupt(cache:key:file:)`` and changes nothing.
  case fail

  /// Moves the damaged store to its name plus `.damaged`, and creates an empty store in its place.
  ///
  /// ``Store/recovery`` reports it. Only one damaged store is kept: one from an earlier time is
  /// deleted. A mount point cannot be moved; opening throws then.
  case recreate

  /// Copies the readable entries to a new store, and moves the damaged one to its name plus
  /// `.damaged`.
  ///
  /// A store is salvaged if it cannot be opened because of damage, or if its directory contains the
  /// file `LARDER.damaged`, which a store writes when it finds damage while it is open. The two
  /// stores are exchanged in one step. ``Store/recovery`` reports it, and its
  /// ``RecoveryReport/salvage`` names the losses; see ``Store/salvage(from:to:)``. Only one damaged
  /// store is kept: one from an earlier time is deleted.
  ///
  /// Opening throws ``StoreError/diskFull`` without disk space for a copy of the store, and
  /// ``StoreError/corrupt(cache:key:file:)`` if nothing can be salvaged. In both cases the damaged
  /// store stays in place.
  case salvage
}

/// The failures that an acknowledged write survives.
public enum Durability: Sendable {
  /// The write survives a crash or kill of the process.
  ///
  /// A power loss may lose the most recent writes, the newest first. It never loses part of an
  /// entry or of a batch.
  case processCrash

  /// The write, and every write acknowledged before it, survives power loss.
  ///
  /// It costs an fsync, which concurrent writers share.
  case powerLoss
}
