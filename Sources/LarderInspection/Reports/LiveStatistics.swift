import Foundation
import Larder

extension StatisticsRecord {
  /// The lines of `info`.
  var facts: [Report.Fact] {
    guard let live else {
      let writer = statistics.map { "process \($0.process)" } ?? "another version or program"
      return [.init("stale", "\(StatisticsFile.name) of \(writer), which is not the owner")]
    }
    let totals = StatisticsTotals(live.statistics)
    let time = live.time.map { ", last counted \(Moment.anyText(Date(timeIntervalSince1970: $0)))" }
    let fresh = Amount.share(totals.fresh, of: totals.reads)
    let memory = Amount.share(totals.memory, of: totals.reads)
    let shares = totals.reads > 0 ? ", \(fresh) of them fresh, \(memory) from memory" : ""
    let (removals, loads) = (Amount.text(totals.removals), Amount.text(totals.loads))
    let (expired, evicted) = (Amount.text(totals.expired), Amount.text(totals.evicted))
    return [
      .init("open for", "\(Moment.text(ofSpan: live.uptime))\(time ?? "")"),
      .init("reads", Amount.text(totals.reads) + shares),
      .init("saves", "\(Amount.text(totals.saves)), removals \(removals), loads \(loads)"),
      .init("deleted", "\(expired) expired entries, \(evicted) for budgets"),
    ]
  }
}

/// The counts of all caches of a store together.
struct StatisticsTotals {
  private(set) var reads = 0
  private(set) var fresh = 0
  private(set) var memory = 0
  private(set) var saves = 0
  private(set) var removals = 0
  private(set) var loads = 0
  /// The time that loads took together.
  private(set) var loadSeconds = 0.0
  /// Entries that sweeps and validations deleted.
  private(set) var expired = 0
  /// Entries that were evicted for a budget.
  private(set) var evicted = 0

  /// No counts.
  init() {}

  /// Any program may have written the statistics: a count is taken for at most 2^44, and sums do
  /// not overflow.
  init(_ statistics: Statistics) {
    func sum(_ counts: Int...) -> Int { counts.reduce(0) { $0 + min(max($1, 0), 1 << 44) } }
    for cache in statistics.caches.values {
      let (found, deleted) = (cache.reads, cache.deletions)
      reads += sum(found.fresh, found.stale, found.expired, found.missing, found.failed)
      fresh += sum(found.fresh)
      memory += sum(found.memory)
      saves += sum(cache.saves)
      removals += sum(cache.removals)
      loads += sum(cache.loads.loads)
      let seconds = cache.loads.time.inSeconds
      if seconds > 0 { loadSeconds += min(seconds, 1e12) }
      expired += sum(deleted.sweeps.entries, deleted.validations.entries)
      evicted += sum(deleted.cacheBudget.entries, deleted.storeBudget.entries)
    }
  }

  /// What was counted between two moments.
  static func - (later: StatisticsTotals, earlier: StatisticsTotals) -> StatisticsTotals {
    var difference = later
    difference.reads -= earlier.reads
    difference.fresh -= earlier.fresh
    difference.memory -= earlier.memory
    difference.saves -= earlier.saves
    difference.removals -= earlier.removals
    difference.loads -= earlier.loads
    difference.loadSeconds -= earlier.loadSeconds
    difference.expired -= earlier.expired
    difference.evicted -= earlier.evicted
    return difference
  }
}
