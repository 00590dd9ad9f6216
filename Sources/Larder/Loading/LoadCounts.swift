/// The number of events of the loads of one cache.
struct LoadCounts: ~Copyable, Sendable {
  let loads: EventCount
  let nanoseconds: EventCount
  let times: EventTimes
  let failures: EventCount
  let refreshes: EventCount
  let joins: EventCount
  let staleServed: EventCount
  let throttled: EventCount

  init(of cache: (String, String)) {
    loads = EventCount("larder_loads_total", [cache])
    nanoseconds = EventCount("larder_load_nanoseconds_total", [cache])
    times = EventTimes("larder_load_duration_seconds", [cache])
    failures = EventCount("larder_load_failures_total", [cache])
    refreshes = EventCount("larder_load_refreshes_total", [cache])
    joins = EventCount("larder_load_joins_total", [cache])
    staleServed = EventCount("larder_load_stale_total", [cache])
    throttled = EventCount("larder_load_throttled_total", [cache])
  }

  var value: CacheStatistics.Loads {
    var value = CacheStatistics.Loads()
    value.loads = loads.value
    value.time = .nanoseconds(nanoseconds.value)
    value.failures = failures.value
    value.refreshes = refreshes.value
    value.joins = joins.value
    value.staleServed = staleServed.value
    value.throttled = throttled.value
    return value
  }
}

extension CacheStatistics {
  /// Loads of values that a cache did not have; see ``Loading``.
  public struct Loads: Sendable, Hashable, Codable {
    /// Calls of a closure that loads, including repetitions.
    public var loads = 0
    /// The time that these calls took together.
    public var time = Duration.zero
    /// Calls of a closure that threw.
    public var failures = 0
    /// Loads that began in the background, while no caller waited for them.
    public var refreshes = 0
    /// Calls that joined a load under way.
    public var joins = 0
    /// Stale entries that were returned instead of a loaded value.
    public var staleServed = 0
    /// Stale entries that were returned without a load, because one had failed shortly before.
    public var throttled = 0
  }
}
