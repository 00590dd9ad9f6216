import LarderEngine

extension Store {
  /// How a store behaves.
  ///
  /// Chosen when it is opened; it cannot change while it is open.
  public struct Options: Sendable {
    // MARK: Correctness

    /// Where the date comes from.
    ///
    /// The default is the system's clock.
    public var clock: any WallClock = SystemClock()

    /// Whether a missing store is created.
    ///
    /// The default is true.
    ///
    /// When false, opening one that is not there is ``StoreError/io(_:)`` and creates nothing.
    public var createIfMissing = true

    /// What writes survive that do not say it themselves.
    ///
    /// The default is ``Durability/processCrash``.
    public var durability = Durability.processCrash

    /// Whether the store is written to.
    ///
    /// The default is ``Access/readWrite``. With ``Access/readOnly``, a missing store is
    /// ``StoreError/io(_:)``, and ``onDamage``, ``byteBudget`` and ``sweepInterval`` mean nothing.
    public var access = Access.readWrite

    /// What opening does with a store that is damaged.
    ///
    /// The default is ``DamagePolicy/fail``. A damaged record is never the store's damage.
    public var onDamage = DamagePolicy.fail

    // MARK: Deleting what has expired, or takes too much room

    /// How many bytes all caches of the store may hold together: keys, records, and their rows in
    /// the index.
    ///
    /// The default is nil, no limit; at least 1. See <doc:Budgets>.
    ///
    /// The first time that a store is opened with one, everything in it is read once to be counted.
    /// The store takes a bit of memory for every 128 bytes of it, 16 MiB at most. A store in memory
    /// keeps to it, too.
    public var byteBudget: Int?

    /// How often the store looks, in seconds, whether something has expired, and deletes it.
    ///
    /// The default is nil: never by itself, only when ``Store/sweep()`` or
    /// ``Cache/validate(maxAge:)`` is called. 1 to 31,536,000, a year, are allowed.
    ///
    /// It deletes about 10,000 entries at a time, on a thread of its own, and nothing until ten
    /// minutes after the store was opened, and after the date was set to another one: what is
    /// deleted for a wrong date is lost. A store in memory does not do it.
    public var sweepInterval: Double?

    /// What calls for a sweep in the background.
    ///
    /// The default is a timer.
    package var sweepTrigger: SweepTrigger = sweepTimer

    // MARK: Performance

    /// How many bytes of writes gather in memory before they become a sorted file.
    ///
    /// The default is 4 MiB; 64 KiB to 1 GiB are allowed.
    ///
    /// Larger makes bulk loads faster, and opening after a crash slower. Two such buffers exist at
    /// most. A store uses at most a 64th of the room that its volume has when it is opened.
    public var writeBufferBytes = 4 << 20

    /// How many bytes of uncompressed file blocks are kept in memory.
    ///
    /// The default is 8 MiB; 0 keeps none. There is no upper limit.
    public var blockCacheBytes = 8 << 20

    /// How large a block of a file is, in bytes before compression: what one read from disk brings.
    ///
    /// The default is 4 KiB; 1 KiB to 4 MiB are allowed. Leave it alone unless you mostly scan.
    public var blockBytes = 4 << 10

    /// How large a file grows, in bytes.
    ///
    /// The default is 2 MiB; 1 MiB to 1 GiB are allowed.
    ///
    /// Larger makes fewer files, and longer compactions.
    public var maxFileBytes = 2 << 20

    /// Bits of Bloom filter for each key.
    ///
    /// The default of 10 lets about 1 % of the lookups of absent keys cost a read from disk. 0 to
    /// 64 are allowed; 0 turns the filter off. Leave it alone.
    public var filterBitsPerKey = 10

    /// Whether blocks are compressed with Snappy.
    ///
    /// The default is true; turn it off where payloads are compressed already.
    public var compression = true

    /// How many files may be open at once.
    ///
    /// The default is 1,000; 74 to 50,000 are allowed.
    public var maxOpenFiles = 1000

    /// Whether opening goes on with the last log instead of starting a new one.
    ///
    /// The default is false. It makes opening a little faster and recovery less simple: leave it
    /// alone.
    public var reusesLogs = false

    /// Makes the default options.
    public init() {}
  }
}

extension Store.Options {
  /// How long the time between two sweeps may be: a system timer counts nanoseconds in 64 bits.
  private static let sweepIntervals = 1...31_536_000

  /// Throws ``StoreError/invalidArgument(_:)`` when an option is out of its range.
  func checkRanges() throws(StoreError) {
    if let byteBudget, byteBudget < 1 {
      throw .invalidArgument("byteBudget is \(byteBudget), outside 1 to \(Int.max)")
    }
    let (shortest, longest) = (Self.sweepIntervals.lowerBound, Self.sweepIntervals.upperBound)
    if let sweepInterval, !(Double(shortest)...Double(longest)).contains(sweepInterval) {
      throw .invalidArgument(
        "sweepInterval is \(sweepInterval), outside \(shortest) to \(longest)")
    }
    do throws(EngineError) {
      try engineOptions.checkRanges()
    } catch {
      throw StoreError(error)
    }
  }

  var engineOptions: LevelDBOptions {
    var options = LevelDBOptions()
    options.createIfMissing = createIfMissing
    options.writeBufferBytes = writeBufferBytes
    options.blockCacheBytes = blockCacheBytes
    options.blockBytes = blockBytes
    options.maxFileBytes = maxFileBytes
    options.filterBitsPerKey = filterBitsPerKey
    options.compression = compression
    options.maxOpenFiles = maxOpenFiles
    options.reusesLogs = reusesLogs
    return options
  }
}
