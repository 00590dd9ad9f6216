public import Foundation

/// How long a cache's entries are fresh, and how much longer they are kept as stale.
///
/// ```swift
/// Lifetime.days(7)                                               // the default of a cache
/// Lifetime.fresh(for: .days(7), thenStaleFor: .days(23))         // then expired
/// Lifetime.unlimited
/// ```
///
/// An entry is *fresh* while its age is below the first limit, *stale* for as long again as the
/// second one says, and *expired* from then on. That is decided on every read, from the date the
/// entry was saved, the lifetime the cache was opened with, and the store's clock: nothing has to
/// run in time for an expired value to stay hidden.
public struct Lifetime: Sendable, Hashable, Codable {
  let fresh: MaxAge
  let stale: MaxAge

  /// Fresh up to `limit`, then stale for `extra` more.
  ///
  /// `extra` is nothing by default.
  public static func fresh(for limit: MaxAge, thenStaleFor extra: MaxAge = .seconds(0)) -> Lifetime
  {
    Lifetime(fresh: limit, stale: extra)
  }

  /// Fresh for ever.
  public static var unlimited: Lifetime { .fresh(for: .unlimited) }

  /// Fresh for so many seconds: finite, not negative.
  ///
  /// Then expired.
  public static func seconds(_ count: Double) -> Lifetime { .fresh(for: .seconds(count)) }

  /// Fresh for so many days of 86,400 seconds, 0 to 3,650,000.
  ///
  /// Then expired.
  public static func days(_ count: Int) -> Lifetime { .fresh(for: .days(count)) }

  /// Fresh for so many days of `calendar`, in its time zone, 0 to 3,650,000.
  ///
  /// Then expired.
  public static func days(_ count: Int, calendar: Calendar) -> Lifetime {
    .fresh(for: .days(count, calendar: calendar))
  }
}

/// What a lifetime says of an entry at one moment.
package enum Freshness: String, Sendable, Codable {
  case fresh, stale, expired
}

extension Lifetime {
  /// What an entry saved at `savedAt` is at `now`, when the call allows `maxAge` at most.
  ///
  /// A maximum age at the call only shortens: beyond it an entry is expired.
  package func freshness(
    of savedAt: Date, at now: Date, maxAge: MaxAge? = nil
  ) -> Freshness {
    guard savedAt.timeIntervalSinceReferenceDate.isFinite else { return .expired }
    if let maxAge, !maxAge.admits(savedAt, at: now) { return .expired }
    guard let freshEnd = fresh.end(from: savedAt), now >= freshEnd else { return .fresh }
    return stale.admits(freshEnd, at: now) ? .stale : .expired
  }

  /// When an entry saved at `savedAt` has expired, stale time included; nil for never.
  package func expiry(from savedAt: Date) -> Date? {
    guard let freshEnd = fresh.end(from: savedAt) else { return nil }
    return stale.end(from: freshEnd)
  }

  /// How wide the buckets of this lifetime's expiry index are, in whole seconds.
  ///
  /// A 64th of the lifetime, so that a key that is overwritten for ever leaves at most 65 index
  /// rows behind, and an entry is deleted at most a 64th of its lifetime late.
  var bucketSeconds: Double {
    let total = (fresh.approximateSeconds ?? 0) + (stale.approximateSeconds ?? 0)
    return max(1, (total / 64).rounded(.up))
  }

  /// The bucket that `expiry` falls into, named by its end: seconds since the reference date.
  package func bucket(of expiry: Date) -> Int64 {
    let width = bucketSeconds
    let end = (expiry.timeIntervalSinceReferenceDate / width).rounded(.up) * width
    return Int64(exactly: end) ?? (end < 0 ? .min : .max)
  }
}

extension Lifetime {
  /// Where the index of a cache with a budget has an entry: where it expires.
  ///
  /// What never expires is evicted as if after the seven days that are the default: a limit that a
  /// store has for all its caches must compare it with what does.
  package func evictionBucket(of savedAt: Date) -> Int64 {
    if let expiry = expiry(from: savedAt) { return bucket(of: expiry) }
    let usual = Lifetime.days(7)
    return usual.expiry(from: savedAt).map(usual.bucket) ?? .max
  }
}

extension Lifetime: CustomStringConvertible {
  /// The lifetime in words, such as `fresh for 7 days`.
  public var description: String { "fresh for \(words)" }

  /// The same without the first words, such as `7 days`.
  var words: String { stale == .seconds(0) ? "\(fresh)" : "\(fresh), then stale for \(stale)" }
}
