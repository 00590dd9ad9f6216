public import Foundation

/// How a cache loads values that it does not have.
///
/// ```swift
/// var loading = Loading()
/// loading.staleWhileRevalidate = true
/// loading.staleIfError = .seconds(86_400)
/// let pages = try store.cache(
///   "pages", of: Page.self, lifetime: .fresh(for: .hours(1), thenStaleFor: .days(7)),
///   loading: loading)
/// ```
///
/// Everything is off by default. It is a setting of a cache, and calls can have their own, except
/// for ``concurrent``. No time may be negative.
public struct Loading: Sendable, Hashable {
  /// The maximum age of an entry that is returned without a load.
  ///
  /// It can only shorten the fresh time: an older entry counts as stale, from this age on until it
  /// expires. Zero loads at each call, whatever the cache has. Nil, the default, leaves the fresh
  /// time as it is.
  public var maxAge: MaxAge?

  /// Whether a stale entry is returned at once while it is refreshed in the background.
  ///
  /// ```swift
  /// var loading = Loading()
  /// loading.staleWhileRevalidate = true
  /// let genres = try store.cache(
  ///   "genres", of: [Genre].self, lifetime: .fresh(for: .hours(1), thenStaleFor: .days(7)),
  ///   loading: loading)
  /// ```
  ///
  /// The first caller that finds the entry stale starts the refresh.
  public var staleWhileRevalidate = false

  /// How long after the end of its fresh time a stale entry is returned when loading fails.
  ///
  /// ```swift
  /// var loading = Loading()
  /// loading.staleIfError = .seconds(86_400)   // offline, yesterday's list is better than none
  /// ```
  ///
  /// The entry is never returned after its stale time. Nil, the default, throws the error of the
  /// load.
  public var staleIfError: Duration?

  /// How long after a failed load stale entries are returned without another load.
  ///
  /// It applies to entries that ``staleWhileRevalidate`` or ``staleIfError`` allows to return, and
  /// to fresh ones that ``refreshAhead`` would refresh. Nil, the default, starts a load for each
  /// call.
  public var retryThrottle: Duration?

  /// How long a caller waits for a load if there is a stale entry.
  ///
  /// Then the stale entry is returned, and the load continues in the background. Nil, the default,
  /// waits for the load.
  public var softTimeout: Duration?

  /// How long a caller waits for a load at all, and how long a load may take.
  ///
  /// ```swift
  /// var loading = Loading()
  /// loading.softTimeout = .seconds(2)    // then a stale entry, if there is one
  /// loading.hardTimeout = .seconds(30)
  /// ```
  ///
  /// Then the call throws ``LoadTimeout``, and leaves the load as if it was cancelled. A load that
  /// has taken so long, repetitions included, is not joined by later callers. Once no caller waits
  /// for it, it is cancelled and abandoned: a refresh in the background, or a closure that ignores
  /// its cancellation, then occupies neither its key nor one of ``concurrent``, and its reply is
  /// dropped. Nil, the default, sets no limit.
  public var hardTimeout: Duration?

  /// The last part of the fresh time, in which a call refreshes an entry in the background.
  ///
  /// ```swift
  /// var loading = Loading()
  /// loading.refreshAhead = 0.1   // in the last 6 minutes of an hour
  /// ```
  ///
  /// It is a share of the fresh time, 0 to 0.5. Each entry has its own share, between half of this
  /// one and all of it, so that entries that were saved together are not all refreshed together.
  /// Nil, the default, refreshes no fresh entry.
  public var refreshAhead: Double?

  /// How long the cache remembers that a load replied ``LoadReply/absent``.
  ///
  /// ```swift
  /// var loading = Loading()
  /// loading.absentFor = .seconds(60)   // a 404 is not asked for again at once
  /// ```
  ///
  /// Up to 10,000 keys are remembered, in memory only. Any change of the key ends it, also the
  /// removal of a range with the key. Nil, the
  /// default, loads again at the next call.
  public var absentFor: Duration?

  /// How long callers of a key load for themselves after a reply ``LoadReply/notShared(_:)``.
  ///
  /// ```swift
  /// var loading = Loading()
  /// loading.notSharedFor = .seconds(120)   // replies of a key are private, or none is
  /// ```
  ///
  /// They do not wait for a load whose reply will not be theirs; Varnish calls it *hit for miss*,
  /// and does it for two minutes. The first reply that may be shared ends it. An error for one
  /// caller, see ``NotShared``, does not begin it. Up to 10,000 keys are
  /// remembered, in memory only, together with those of ``absentFor``. Nil, the default, lets
  /// callers wait for each other, which spares a server whose replies are seldom private.
  public var notSharedFor: Duration?

  /// How often, and when, a load that failed is repeated; not at all by default.
  public var retries = Retries(extra: 0)

  /// The maximum number of loads of the cache at once, at least 1; others wait in order.
  ///
  /// Nil, the default, is no limit. Only the setting of the cache counts. A load that another load
  /// waits for does not wait. A load that ignores its cancellation counts until ``hardTimeout``.
  public var concurrent: Int?

  /// Creates the default options.
  public init() {}
}

extension Loading {
  /// How a load that failed is repeated.
  ///
  /// The time before the n-th repetition is random, between 0 and `first` times 2^(n-1), but at
  /// most `upTo`. A load is not repeated after it was cancelled.
  public struct Retries: Sendable, Hashable {
    package let extra: Int
    let first: Duration
    package let upTo: Duration

    /// Creates a rule for repetitions.
    ///
    /// ```swift
    /// var loading = Loading()
    /// loading.retries = Loading.Retries(extra: 3)
    /// ```
    ///
    /// - Parameters:
    ///   - extra: The number of repetitions; not negative.
    ///   - first: The longest time before the first repetition; 200 milliseconds by default.
    ///   - upTo: The longest time before any repetition; 30 seconds by default.
    public init(
      extra: Int, first: Duration = .milliseconds(200), upTo: Duration = .seconds(30)
    ) {
      (self.extra, self.first, self.upTo) = (extra, first, upTo)
    }

    /// The time before a repetition, counted from 1; `chance` is at least 0 and less than 1.
    package func delay(before attempt: Int, chance: Double) -> Duration {
      let longest = min(first.limited.inSeconds * exp2(Double(attempt - 1)), upTo.limited.inSeconds)
      return .seconds(longest * chance)
    }
  }
}

/// The error of a call that waited longer than ``Loading/hardTimeout``.
///
/// The load continues if another caller waits for it; otherwise it is cancelled.
public struct LoadTimeout: Error, Hashable {}

extension LoadTimeout: LocalizedError, CustomStringConvertible {
  /// Returns ``description``.
  public var errorDescription: String? { description }

  /// The error as a sentence.
  public var description: String {
    """
    The value was not loaded within the time that Loading.hardTimeout allows. Try again later, or \
    allow more time.
    """
  }
}

extension Loading {
  /// Whether a fresh entry may be too old for the call, or due for a refresh.
  var isTimed: Bool { maxAge != nil || refreshAhead != nil }

  /// Whether an entry is within the maximum age; none is within zero, not even one of the future.
  package func admits(_ savedAt: Date, at date: Date) -> Bool {
    guard let maxAge else { return true }
    return maxAge != .seconds(0) && maxAge.admits(savedAt, at: date)
  }

  /// The end of the time for which an entry is fresh and within the maximum age; nil for no end.
  package func freshEnd(of savedAt: Date, in lifetime: Lifetime) -> Date? {
    [lifetime.fresh, maxAge ?? .unlimited].compactMap { $0.end(from: savedAt) }.min()
  }

  /// Throws ``StoreError/invalidArgument(_:)`` if an option is outside its range.
  package func checkRanges() throws(StoreError) {
    let spans = [
      ("staleIfError", staleIfError), ("retryThrottle", retryThrottle),
      ("softTimeout", softTimeout), ("hardTimeout", hardTimeout), ("absentFor", absentFor),
      ("notSharedFor", notSharedFor),
      ("retries.first", retries.first), ("retries.upTo", retries.upTo),
    ]
    for case (let name, let span?) in spans where span < .zero {
      throw .invalidArgument("Loading.\(name) is \(span); it must not be negative")
    }
    if let refreshAhead, !(0...0.5).contains(refreshAhead) {
      throw .invalidArgument("Loading.refreshAhead is \(refreshAhead), outside 0 to 0.5")
    }
    if let concurrent, concurrent < 1 {
      throw .invalidArgument("Loading.concurrent is \(concurrent); at least 1 is allowed")
    }
    if retries.extra < 0 {
      throw .invalidArgument(
        "Loading.retries has \(retries.extra) extra loads; at least 0 is allowed")
    }
  }
}

extension Duration {
  /// The duration, at most 100 years, with which times can be computed without overflow.
  var limited: Duration { min(self, .seconds(3_155_760_000)) }
}
