import Synchronization

extension ReadOutcome {
  /// The outcome of reading an intact entry on disk.
  init(_ freshness: Freshness) {
    switch freshness {
    case .fresh: self = .fresh
    case .stale: self = .stale
    case .expired: self = .expired
    }
  }

  init<Value>(_ found: Lookup<Value>) {
    switch found {
    case .fresh: self = .fresh
    case .stale: self = .stale
    case .expired: self = .expired
    case .missing: self = .missing
    }
  }
}

/// The event counts of an open store.
///
/// The counts of a cache are stored by name. So if a sweep counts deletions in a cache that is not
/// open, the counts continue when the cache is opened.
final class StoreCounts: Sendable {
  let sweeps = EventCount("larder_sweeps_total", [])
  private let commits = EventTimes(
    "larder_commit_duration_seconds", [("durability", "processCrash")])
  private let syncedCommits = EventTimes(
    "larder_commit_duration_seconds", [("durability", "powerLoss")])
  private let caches = Lock<[CacheName: CacheCounts]>([:])
  private let report: (@Sendable (CacheEvent) -> Void)?

  /// - Parameter report: The program's handler of events; nil if it has none.
  init(reportingTo report: (@Sendable (CacheEvent) -> Void)?) { self.report = report }

  /// Runs a commit, and adds its time unless it throws.
  @inline(__always) func measureCommit<R, E: Error>(
    synced: Bool, _ body: () throws(E) -> R
  ) throws(E) -> R {
    #if Metrics
      // Not by the store's clock, which may call the store: the caller may hold a lock.
      let start = SystemClock().uptime()
      let result = try body()
      let nanoseconds = (SystemClock().uptime() - start).wholeNanoseconds
      if synced {
        syncedCommits.add(nanoseconds: nanoseconds)
      } else {
        commits.add(nanoseconds: nanoseconds)
      }
      return result
    #else
      try body()
    #endif
  }

  func ofCache(_ name: String) -> CacheCounts {
    caches.withLock { caches in
      if let counts = caches[CacheName(name)] { return counts }
      let counts = CacheCounts(of: name, reportingTo: report)
      caches[CacheName(name)] = counts
      return counts
    }
  }

  /// The counts of all caches, including those whose opening failed.
  var ofCaches: [CacheName: CacheCounts] { caches.withLock { $0 } }
}

/// The event counts of one cache.
final class CacheCounts: Sendable {
  let name: String
  /// The program's handler of events; nil if it has none.
  let report: (@Sendable (CacheEvent) -> Void)?
  let reads: ReadCounts
  let saves: EventCount
  let removals: EventCount
  let clears: EventCount
  // Automatic deletions, by cause.
  let swept: DeletionCount
  let validated: DeletionCount
  let evictedByOwnBudget: DeletionCount
  let evictedByStoreBudget: DeletionCount
  let loads: LoadCounts

  init(of name: String, reportingTo report: (@Sendable (CacheEvent) -> Void)?) {
    (self.name, self.report) = (name, report)
    let cache = ("cache", name)
    reads = ReadCounts(of: cache)
    saves = EventCount("larder_saves_total", [cache])
    removals = EventCount("larder_removals_total", [cache])
    clears = EventCount("larder_clears_total", [cache])
    swept = DeletionCount(of: cache, cause: "sweep")
    validated = DeletionCount(of: cache, cause: "validation")
    evictedByOwnBudget = DeletionCount(of: cache, cause: "cache-budget")
    evictedByStoreBudget = DeletionCount(of: cache, cause: "store-budget")
    loads = LoadCounts(of: cache)
  }
}

/// The number of reads of a cache, by outcome.
struct ReadCounts: ~Copyable, Sendable {
  private let fresh: EventCount
  private let stale: EventCount
  private let expired: EventCount
  private let missing: EventCount
  private let failed: EventCount
  /// The hits in memory of caches that were dropped, and had this name.
  private let earlierHits = Atomic<Int>(0)

  init(of cache: (String, String)) {
    func count(_ outcome: ReadOutcome) -> EventCount {
      EventCount("larder_reads_total", [cache, ("outcome", outcome.rawValue)])
    }
    fresh = count(.fresh)
    stale = count(.stale)
    expired = count(.expired)
    missing = count(.missing)
    failed = count(.failed)
  }

  func add(_ outcome: ReadOutcome) {
    switch outcome {
    case .memory: fresh.addElsewhere()
    case .fresh: fresh.add()
    case .stale: stale.add()
    case .expired: expired.add()
    case .missing: missing.add()
    case .failed: failed.add()
    }
  }

  /// Keeps the hits in memory of a cache that is dropped.
  func keep(hits: Int) { earlierHits.wrappingAdd(hits, ordering: .relaxed) }

  /// The counts, with `hits` in memory of an open cache.
  func value(withHits hits: Int) -> CacheStatistics.Reads {
    let hits = hits + earlierHits.load(ordering: .relaxed)
    return CacheStatistics.Reads(
      fresh: fresh.value + hits, memory: hits, stale: stale.value, expired: expired.value,
      missing: missing.value, failed: failed.value)
  }
}

/// The number of entries that were deleted for one cause, and their bytes.
struct DeletionCount: ~Copyable, Sendable {
  private let entries: EventCount
  private let bytes: EventCount

  init(of cache: (String, String), cause: String) {
    let dimensions = [cache, ("cause", cause)]
    entries = EventCount("larder_deletions_total", dimensions)
    bytes = EventCount("larder_deleted_bytes_total", dimensions)
  }

  /// Counts a deleted entry.
  ///
  /// - Parameter bytes: The size of its record and physical key.
  func add(bytes: Int) {
    entries.add()
    self.bytes.add(bytes)
  }

  var value: EntryTotal { EntryTotal(entries: entries.value, bytes: bytes.value) }
}

/// The changes of a batch in each cache, to be counted once the batch is committed.
struct ChangeNotes {
  enum Change {
    case save, removal, clear
  }

  private struct Note {
    let counts: CacheCounts
    var saves = 0
    var removals = 0
    var clears = 0

    mutating func add(_ change: Change) {
      switch change {
      case .save: saves += 1
      case .removal: removals += 1
      case .clear: clears += 1
      }
    }

    func count() {
      if saves > 0 { counts.saves.add(saves) }
      if removals > 0 { counts.removals.add(removals) }
      if clears > 0 { counts.clears.add(clears) }
    }
  }

  // As in `DueNotes`, a batch that changes one cache allocates nothing.
  private var first: Note?
  private var others: [Note] = []

  mutating func add(_ change: Change, _ counts: CacheCounts) {
    if first == nil { first = Note(counts: counts) }
    if first?.counts === counts {
      first?.add(change)
    } else {
      let index = others.firstIndex { $0.counts === counts } ?? others.count
      if index == others.count { others.append(Note(counts: counts)) }
      others[index].add(change)
    }
  }

  /// Adds the changes to the counts of their caches.
  ///
  /// To be called after a successful commit; it is unknown whether a failed one took effect.
  func count() {
    first?.count()
    for other in others { other.count() }
  }
}

#if Metrics
  import CoreMetrics
#endif

/// The number of times an event has happened since a store was opened, or a tier was created.
///
/// All their counts are of this type. With the package trait `Metrics`, each one also increments a
/// counter of swift-metrics.
package struct EventCount: ~Copyable, Sendable {
  private let total = Atomic<Int>(0)

  #if Metrics
    private let counter: Counter

    package init(_ label: String, _ dimensions: [(String, String)]) {
      counter = Counter(label: label, dimensions: dimensions)
    }
  #else
    package init(_ label: String, _ dimensions: [(String, String)]) {}
  #endif

  package var value: Int { total.load(ordering: .relaxed) }

  /// Counts an event that has a count of its own here, for swift-metrics.
  @inline(__always) func addElsewhere() {
    #if Metrics
      counter.increment(by: 1)
    #endif
  }

  package func add(_ amount: Int = 1) {
    // Not `add`, which loops to detect an overflow; reaching one would take centuries.
    total.wrappingAdd(amount, ordering: .relaxed)
    #if Metrics
      counter.increment(by: amount)
    #endif
  }
}

/// The times that events took, for swift-metrics with the package trait `Metrics`.
struct EventTimes: ~Copyable, Sendable {
  #if Metrics
    private let timer: Timer

    init(_ label: String, _ dimensions: [(String, String)]) {
      timer = Timer(label: label, dimensions: dimensions)
    }
  #else
    init(_ label: String, _ dimensions: [(String, String)]) {}
  #endif

  func add(nanoseconds: Int) {
    #if Metrics
      timer.recordNanoseconds(nanoseconds)
    #endif
  }
}

extension Duration {
  var wholeNanoseconds: Int {
    Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
  }
}
