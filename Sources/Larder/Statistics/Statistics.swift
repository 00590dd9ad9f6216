/// A snapshot of a store's event counts since it was opened.
///
/// Each count is exact. The counts are read one after another while other threads may use the
/// store, so two related counts may differ by the latest events.
///
/// With ``Store/Options/publishesStatistics``, they are also in a file in the store's directory.
public struct Statistics: Sendable, Hashable, Codable {
  /// The counts of each cache, by its name.
  ///
  /// Includes every cache that was opened, and every other cache from which the store has deleted
  /// entries.
  public var caches: [String: CacheStatistics] = [:]
  /// The number of sweeps that have begun, in the background or not, even if they found nothing.
  public var sweeps = 0
  /// Whether a sweep might find entries to delete now, as far as is known without a lookup.
  ///
  /// True until the first sweep, and while a sweep is running. ``Store/contents()`` counts the
  /// entries.
  public var mayHaveBacklog = false
  /// The decoded values in memory.
  public var memory = MemoryStatistics()
  /// The segments, which hold large values; see <doc:LargeValues>.
  public var segments = SegmentStatistics()
  /// What ``Store/Options/diskBudget`` has led to; zeros without one.
  public var disk = DiskStatistics()

  init() {}
}

/// What was written to the segments of a store, and given back, since it was opened.
///
/// A collection finds out which payloads are still needed; before the first one, the first three
/// numbers are 0.
public struct SegmentStatistics: Sendable, Hashable, Codable {
  /// The segments that the last collection has left, without the newest one.
  public var count = 0
  /// Their size in bytes.
  public var byteCount = 0
  /// The bytes in them that entries needed when the last collection began.
  public var liveBytes = 0
  /// The bytes of payloads that were written, those that collections copied included.
  public var writtenBytes = 0
  /// The bytes of payloads that collections have copied.
  public var copiedBytes = 0
  /// The bytes of the segments that collections have deleted.
  public var deletedBytes = 0

  init() {}
}

/// What ``Store/Options/diskBudget`` has led to since the store was opened.
public struct DiskStatistics: Sendable, Hashable, Codable {
  /// ``Store/Options/diskBudget``; nil without one.
  public var budget: Int?
  /// The size of the store's files when they were last measured, in bytes; 0 before that.
  public var byteCount = 0
  /// How often they were found too large.
  public var overruns = 0
  /// How often all tables were compacted because of that.
  public var compactions = 0
  /// How often entries were evicted because of that.
  public var evictions = 0

  init() {}
}

/// The event counts of one cache since its store was opened.
public struct CacheStatistics: Sendable, Hashable, Codable {
  /// Reads of a key, by outcome.
  ///
  /// Calls of ``Cache/value(for:)``, ``Cache/entry(for:)`` and ``Cache/lookup(for:maxAge:)`` are
  /// counted; scans are not.
  public struct Reads: Sendable, Hashable, Codable {
    /// Reads that found a fresh entry (hits).
    public var fresh = 0
    /// Those of them whose value was in memory.
    public var memory = 0
    /// Reads that found a stale entry, whether or not the call returned it.
    public var stale = 0
    /// Reads that found an entry expired by the cache's lifetime or the call's maximum age.
    public var expired = 0
    /// Reads that found no entry.
    public var missing = 0
    /// Reads that threw.
    ///
    /// The entry is damaged, undecodable or newer, the disk failed, the key is over its limit, or
    /// the store is closed.
    public var failed = 0
  }

  /// Entries that the store deleted, by cause; explicit removals and clears are not included.
  public struct Deletions: Sendable, Hashable, Codable {
    /// Entries deleted by sweeps.
    public var sweeps = EntryTotal()
    /// Entries deleted by ``Cache/validate(maxAge:)``.
    public var validations = EntryTotal()
    /// Entries evicted for the cache's own budget, including expired ones.
    public var cacheBudget = EntryTotal()
    /// Entries evicted for the store's budget, including expired ones.
    public var storeBudget = EntryTotal()
  }

  /// Reads of a key.
  public var reads = Reads()
  /// Values that were saved; failed saves, touches and migrations are not counted.
  public var saves = 0
  /// Removals of a key, whether or not it had an entry; failed removals are not counted.
  public var removals = 0
  /// The number of times the cache was cleared.
  public var clears = 0
  /// Entries that the store deleted, by cause.
  public var deletions = Deletions()
  /// Loads of values that the cache did not have.
  public var loads = Loads()
  /// The size of the cache's records in bytes, with their keys.
  ///
  /// Nil if the cache is not open, or if neither it nor the store has a budget.
  public var heldBytes: Int?

  init() {}
}

/// A number of entries, and their size.
public struct EntryTotal: Sendable, Hashable, Codable {
  /// The number of entries.
  public var entries = 0
  /// The size of their stored keys and records in bytes.
  ///
  /// A stored key is the encoded key plus a prefix of 2 to 11 bytes. A record is the encoded value
  /// plus a header of at least 36 bytes. A large value counts as it is stored, compressed or not
  /// (see <doc:LargeValues>); that LevelDB compresses its blocks is not counted.
  public var bytes = 0

  mutating func add(bytes: Int) {
    entries += 1
    self.bytes += bytes
  }
}

extension Store {
  /// The event counts since the store was opened.
  ///
  /// They remain available after ``close()``; from then on, only failed reads are counted.
  ///
  /// ```swift
  /// let reads = store.statistics.caches["genres"]?.reads
  /// ```
  ///
  /// - Complexity: A few loads for each cache; no lookup, and no waiting for the disk.
  public var statistics: Statistics {
    var statistics = Statistics()
    let open = allOpenCaches
    for (name, counts) in context.counts.ofCaches {
      let cache = value(of: counts, open[name])
      guard open[name] != nil || cache != CacheStatistics() else { continue }
      statistics.caches[name.text] = cache
    }
    statistics.sweeps = context.counts.sweeps.value
    statistics.mayHaveBacklog = mayHaveBacklog
    if let memory = context.memory { statistics.memory = memory.statistics }
    if let budget = context.diskBudget { statistics.disk = budget.statistics }
    let totals = context.engine.segmentTotals
    statistics.segments.count = totals.segments
    statistics.segments.byteCount = totals.byteCount
    statistics.segments.liveBytes = totals.liveBytes
    statistics.segments.writtenBytes = totals.appendedBytes
    statistics.segments.copiedBytes = totals.copiedBytes
    statistics.segments.deletedBytes = totals.deletedBytes
    return statistics
  }

  /// The counts of a cache, with what is known of it while it is open.
  fileprivate func value(of counts: CacheCounts, _ open: (any OpenCache)?) -> CacheStatistics {
    var value = counts.value(withHits: open?.memory?.hits ?? 0)
    if let id = open?.id { value.heldBytes = context.budgets.accounting.count(id)?.bytes }
    return value
  }

  private var mayHaveBacklog: Bool {
    var answer = true
    let now = context.clock.now()
    withSweeperIfAvailable { answer = $0.mayFindSomething(in: self, at: now) }
    return answer
  }
}

extension CacheCounts {
  fileprivate func value(withHits hits: Int) -> CacheStatistics {
    var statistics = CacheStatistics()
    statistics.reads = reads.value(withHits: hits)
    statistics.saves = saves.value
    statistics.removals = removals.value
    statistics.clears = clears.value
    statistics.loads = loads.value
    statistics.deletions.sweeps = swept.value
    statistics.deletions.validations = validated.value
    statistics.deletions.cacheBudget = evictedByOwnBudget.value
    statistics.deletions.storeBudget = evictedByStoreBudget.value
    return statistics
  }
}

extension Cache {
  /// The event counts of the cache since its store was opened.
  ///
  /// ```swift
  /// let loads = genres.statistics.loads
  /// ```
  ///
  /// - Complexity: A few loads; no lookup, and no waiting for the disk.
  public var statistics: CacheStatistics { store.value(of: core.counts, core) }
}
