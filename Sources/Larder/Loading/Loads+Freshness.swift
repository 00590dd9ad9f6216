import Foundation

// How entries are judged that are on disk.

extension Loads {
  private func lifetime(of entry: Entry<some Sendable>) -> Lifetime { entry.lifetime ?? lifetime }

  func freshness(
    of entry: Entry<some Sendable>, _ loading: Loading, at date: Date
  ) -> Freshness {
    let freshness = lifetime(of: entry).freshness(of: entry.savedAt, at: date)
    return freshness == .fresh && !loading.admits(entry.savedAt, at: date) ? .stale : freshness
  }

  /// The state of what was found, at a date and the clock's uptime.
  func judge(
    _ found: LoadFound, _ loading: Loading, at date: Date, uptime: Duration
  ) -> Machine.Found {
    let state = judgeDates(of: found, loading, at: date)
    guard let sharing = found.sharing else { return state }
    return sharing.judge(state, at: uptime)
  }

  private func judgeDates(
    of found: LoadFound, _ loading: Loading, at date: Date
  ) -> Machine.Found {
    if let failure = found.failure { return .failed(failure) }
    guard let entry = found.entry else { return .unusable }
    switch freshness(of: entry, loading, at: date) {
    case .fresh: return .fresh(isDue: isDue(entry, loading, at: date))
    case .stale:
      let end = loading.freshEnd(of: entry.savedAt, in: lifetime(of: entry))
      return .stale(Duration(from: end ?? date, to: date))
    case .expired: return .unusable
    }
  }

  /// The entry that was found, if it is fresh now; throws why it could not be read.
  func freshEntry(
    _ found: LoadFound, _ loading: Loading
  ) throws -> LoadedEntry<any Sendable>? {
    let (date, now) = (clock.now(), clock.uptime())
    switch judge(found, loading, at: date, uptime: now) {
    case .failed(let failure): throw failure
    case .fresh:
      var entry = found.entry.map { LoadedEntry($0, age: Duration(from: $0.savedAt, to: date)) }
      entry?.isConfirmed = found.sharing?.isConfirmed(at: now) ?? false
      return entry
    case .stale, .unusable: return nil
    }
  }

  /// Whether a fresh entry is to be refreshed ahead of time.
  func isDue(_ entry: Entry<some Sendable>, _ loading: Loading, at date: Date? = nil) -> Bool {
    guard let share = loading.refreshAhead,
      let end = lifetime(of: entry).fresh.end(from: entry.savedAt)
    else { return false }
    // Another one for each save, because the sequence is part of the version.
    let golden = 0.618_033_988_749_895
    let chance = (seed + Double(entry.version.sequence % (1 << 32)) * golden)
      .truncatingRemainder(dividingBy: 1)
    let total = end.timeIntervalSince(entry.savedAt)
    let left = end.timeIntervalSince(date ?? entry.readAt)
    return left < total * share * (0.5 + 0.5 * chance)
  }

  /// What the closure of a load is given.
  func previous(_ found: LoadFound, at date: Date) -> Previous<any Sendable>? {
    guard let entry = found.entry else { return nil }
    let isExpired = freshness(of: entry, Loading(), at: date) == .expired
    return Previous(
      value: isExpired ? nil : entry.value, validator: entry.validator, savedAt: entry.savedAt)
  }
}
