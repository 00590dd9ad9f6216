/// What a store has done since it was opened: a snapshot of its counts.
///
/// Each count is exact. They are read one after another, while others may be at work: a count may
/// have in it what another one that belongs to it has not yet.
public struct Statistics: Sendable, Hashable {
  /// What was counted for each cache, by its name.
  ///
  /// Every cache that was opened is there, and of those that were not the ones of which a sweep has
  /// deleted something.
  public var caches: [String: CacheStatistics] = [:]
  /// How many sweeps have begun, those in the background and those that found nothing included.
  public var sweeps = 0
  /// Whether a sweep might find something to delete now, as far as is known without looking.
  ///
  /// True until the first sweep, and while one is under way. ``Store/contents()`` tells how much.
  public var mayHaveBacklog = false

  init() {}
}

/// What a store has done with one cache since the store was opened.
public struct CacheStatistics: Sendable, Hashable {
  /// Reads of a key, by what they came to: ``Cache/value(for:)``, ``Cache/entry(for:)`` and
  /// ``Cache/lookup(for:maxAge:)``.
  ///
  /// Scans are not counted.
  public struct Reads: Sendable, Hashable {
    /// Reads that found a fresh entry: hits.
    public var fresh = 0
    /// Reads that found a stale entry, whether it was given out or not.
    public var stale = 0
    /// Reads that found an expired entry, by the cache's lifetime or by the call's maximum age.
    public var expired = 0
    /// Reads that found no entry.
    public var missing = 0
    /// Reads that threw, whatever the error: a damaged, undecodable or newer entry, a failing disk,
    /// a key over its limit, a store that is closed.
    public var failed = 0
  }

  /// What the store has deleted by itself, by what for.
  public struct Deletions: Sendable, Hashable {
    /// What sweeps have deleted.
    public var sweeps = EntryTotal()
    /// What ``Cache/validate(maxAge:)`` has deleted.
    public var validations = EntryTotal()
    /// What had to go because of the cache's own budget, expired entries among it.
    public var cacheBudget = EntryTotal()
    /// What had to go because of the store's budget.
    public var storeBudget = EntryTotal()
  }

  /// Reads of a key.
  public var reads = Reads()
  /// Values that were saved: a save that failed, a touch and a migration are not counted.
  public var saves = 0
  /// Keys that were removed, whether there was an entry or not.
  ///
  /// A removal that failed is not counted.
  public var removals = 0
  /// How often the cache was cleared.
  public var clears = 0
  /// What was deleted without being named.
  public var deletions = Deletions()
  /// How many bytes the cache holds, rows of the index included; nil for one that is not counted,
  /// because neither it nor the store has a budget.
  public var heldBytes: Int?

  init() {}
}

/// A number of entries, and what they take up.
public struct EntryTotal: Sendable, Hashable {
  /// How many entries.
  public var entries = 0
  /// Their stored keys and records in bytes, before compression.
  ///
  /// A stored key is the encoded key, and 2 to 11 bytes that say whose it is; a record is the
  /// encoded value, and 36 bytes or more. Rows of the index are not counted.
  public var bytes = 0

  mutating func add(bytes: Int) {
    entries += 1
    self.bytes += bytes
  }
}

extension Store {
  /// What the store has done since it was opened.
  ///
  /// It can be asked after ``close()``, too; of what is called then only reads count, as failed.
  ///
  /// ```swift
  /// let reads = store.statistics.caches["genres"]?.reads
  /// ```
  ///
  /// - Complexity: No lookup; a few loads for each cache. It waits for nobody's disk.
  public var statistics: Statistics {
    var statistics = Statistics()
    let open = allOpenCaches
    for (name, counts) in context.counts.ofCaches {
      var cache = counts.value
      if let id = open[name]?.id { cache.heldBytes = context.budgets.accounting.count(id)?.bytes }
      guard open[name] != nil || cache != CacheStatistics() else { continue }
      statistics.caches[name.text] = cache
    }
    statistics.sweeps = context.counts.sweeps.value
    statistics.mayHaveBacklog = mayHaveBacklog
    return statistics
  }

  private var mayHaveBacklog: Bool {
    var answer = true
    let now = context.clock.now()
    withSweeperIfAvailable { answer = $0.mayFindSomething(in: self, at: now) }
    return answer
  }
}

extension CacheCounts {
  fileprivate var value: CacheStatistics {
    var statistics = CacheStatistics()
    statistics.reads = reads.value
    statistics.saves = saves.value
    statistics.removals = removals.value
    statistics.clears = clears.value
    statistics.deletions.sweeps = swept.value
    statistics.deletions.validations = validated.value
    statistics.deletions.cacheBudget = evictedByOwnBudget.value
    statistics.deletions.storeBudget = evictedByStoreBudget.value
    return statistics
  }
}
