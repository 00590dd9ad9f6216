public import Foundation

/// How long the entries of a cache stay fresh, and how much longer they are kept as stale.
///
/// ```swift
/// Lifetime.days(7)                                               // the default of a cache
/// Lifetime.fresh(for: .days(7), thenStaleFor: .days(23))         // then expired
/// Lifetime.unlimited
/// ```
///
/// An entry is *fresh* until the first limit, *stale* for the time of the second limit, and then
/// *expired*. The state is computed at every read, from the date the entry was saved, the lifetime
/// the cache was opened with, and the store's clock. Expired values are hidden even if no sweep has
/// run.
public struct Lifetime: Sendable, Hashable, Codable {
  package let fresh: MaxAge
  package let stale: MaxAge

  /// Fresh for `limit`, then stale for `extra`, which is 0 seconds by default.
  ///
  /// ```swift
  /// let lifetime = Lifetime.fresh(for: .hours(1), thenStaleFor: .days(1))
  /// ```
  public static func fresh(for limit: MaxAge, thenStaleFor extra: MaxAge = .seconds(0)) -> Lifetime
  {
    Lifetime(fresh: limit, stale: extra)
  }

  /// Fresh forever; entries never expire.
  public static var unlimited: Lifetime { .fresh(for: .unlimited) }

  /// Fresh for `count` seconds, then expired.
  ///
  /// `count` must be finite and not negative; any other value is a programmer error.
  public static func seconds(_ count: Double) -> Lifetime { .fresh(for: .seconds(count)) }

  /// Fresh for `count` minutes, then expired.
  ///
  /// `count` must be finite and not negative; any other value is a programmer error.
  public static func minutes(_ count: Double) -> Lifetime { .fresh(for: .minutes(count)) }

  /// Fresh for `count` hours, then expired.
  ///
  /// ```swift
  /// let genres = try store.cache("genres", of: [Genre].self, lifetime: .hours(6))
  /// ```
  ///
  /// `count` must be finite and not negative; any other value is a programmer error.
  public static func hours(_ count: Double) -> Lifetime { .fresh(for: .hours(count)) }

  /// Fresh for `count` weeks of seven days of 86,400 seconds, then expired.
  ///
  /// `count` must be 0 to 521,428; any other value is a programmer error.
  public static func weeks(_ count: Int) -> Lifetime { .fresh(for: .weeks(count)) }

  /// Fresh for `count` days of 86,400 seconds, then expired.
  ///
  /// `count` must be 0 to 3,650,000; any other value is a programmer error.
  public static func days(_ count: Int) -> Lifetime { .fresh(for: .days(count)) }

  /// Fresh for `count` days of `calendar`, in its time zone, then expired.
  ///
  /// ```swift
  /// // Until the same time of day, 7 days later in the user's calendar.
  /// let lifetime = Lifetime.days(7, calendar: .current)
  /// ```
  ///
  /// `count` must be 0 to 3,650,000; any other value is a programmer error.
  public static func days(_ count: Int, calendar: Calendar) -> Lifetime {
    .fresh(for: .days(count, calendar: calendar))
  }
}

extension Lifetime {
  /// Creates a lifetime of spans of time, such as a server's `max-age`, and checks them.
  ///
  /// ```swift
  /// let lifetime = try Lifetime(.seconds(maxAge), thenStaleFor: .seconds(86_400))
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The fresh time, not negative.
  ///   - extra: The stale time after that, not negative; zero by default.
  /// - Throws: ``StoreError/invalidArgument(_:)`` for a negative span.
  public init(_ limit: Duration, thenStaleFor extra: Duration = .zero) throws {
    self.init(fresh: try MaxAge(limit), stale: try MaxAge(extra))
  }
}

/// The state of an entry at one moment.
package enum Freshness: String, Sendable, Codable {
  case fresh, stale, expired
}

extension Lifetime {
  /// The state at `now` of an entry that was saved at `savedAt`.
  ///
  /// `maxAge` can only shorten the lifetime: at that age and beyond, the entry is expired.
  package func freshness(
    of savedAt: Date, at now: Date, maxAge: MaxAge? = nil
  ) -> Freshness {
    guard savedAt.timeIntervalSinceReferenceDate.isFinite else { return .expired }
    if let maxAge, !maxAge.admits(savedAt, at: now) { return .expired }
    guard let freshEnd = fresh.end(from: savedAt), now >= freshEnd else { return .fresh }
    return stale.admits(freshEnd, at: now) ? .stale : .expired
  }

  /// The date at which the fresh time of an entry saved at `savedAt` ends; nil for never.
  package func freshEnd(from savedAt: Date) -> Date? { fresh.end(from: savedAt) }

  /// The date at which an entry saved at `savedAt` expires, after its stale time; nil for never.
  package func expiry(from savedAt: Date) -> Date? {
    guard let freshEnd = fresh.end(from: savedAt) else { return nil }
    return stale.end(from: freshEnd)
  }

  /// The fresh time in seconds, roughly; nil for unlimited.
  package var freshSeconds: Double? { fresh.approximateSeconds }

  /// The stale time in seconds, roughly; nil for unlimited.
  package var staleSeconds: Double? { stale.approximateSeconds }
}

extension Lifetime: CustomStringConvertible {
  /// The lifetime as text, such as `fresh for 7 days`, or `never expires`.
  public var description: String { fresh == .unlimited ? "never expires" : "fresh for \(words)" }

  /// The text without `fresh for`, such as `7 days`.
  var words: String {
    switch stale {
    case .seconds(0): "\(fresh)"
    case .unlimited: "\(fresh), then stale without end"
    default: "\(fresh), then stale for \(stale)"
    }
  }
}

extension Duration {
  /// The time from one date to another; negative if `end` is the earlier one.
  ///
  /// It is limited to 2^63 seconds in each direction. If a date is not a number, it is the longest
  /// one.
  init(from start: Date, to end: Date) {
    let seconds = end.timeIntervalSince(start)
    let whole = seconds.rounded(.towardZero)
    guard let count = Int64(exactly: whole) else {
      self = .seconds(seconds < 0 ? Int64.min : .max)
      return
    }
    self.init(
      secondsComponent: count,
      attosecondsComponent: Int64(((seconds - whole) * 1e18).rounded()))
  }

  /// The duration in seconds; a whole number of seconds below 2^53 is exact.
  package var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
