public import Foundation

/// How old something may become.
///
/// Below it is young enough; at it, to the second, it no longer is.
///
/// ```swift
/// MaxAge.days(7)                          // 604,800 seconds, in every time zone
/// MaxAge.days(7, calendar: .current)      // to the same time of day seven days on
/// MaxAge.seconds(90)
/// MaxAge.unlimited
/// ```
///
/// What was saved in the future (the clock was moved back) has no age yet and is young enough. A
/// date that is not a number never is.
public struct MaxAge: Sendable, Hashable {
  enum Rule: Sendable, Hashable {
    case unlimited
    case seconds(Double)
    case days(Int, Calendar)
  }

  /// The largest day count: ten thousand years.
  ///
  /// Beyond its range a calendar answers with the date it was asked about, and everything would be
  /// expired at once.
  static let dayLimit = 3_650_000

  let rule: Rule

  /// No limit.
  public static var unlimited: MaxAge { MaxAge(rule: .unlimited) }

  /// So many seconds.
  ///
  /// `count` is finite and not negative; anything else is a programmer's error.
  public static func seconds(_ count: Double) -> MaxAge {
    precondition(count.isFinite && count >= 0, "a maximum age of \(count) seconds")
    return MaxAge(rule: .seconds(count))
  }

  /// So many days of 86,400 seconds, as a calendar in UTC counts them.
  ///
  /// `count` is 0 to 3,650,000; anything else is a programmer's error.
  public static func days(_ count: Int) -> MaxAge {
    precondition((0...dayLimit).contains(count), "a maximum age of \(count) days")
    return .seconds(Double(count) * 86_400)
  }

  /// So many days of `calendar`, in its time zone: to the same time of day, which across a change
  /// of clocks is an hour more or less.
  ///
  /// `count` is 0 to 3,650,000; anything else is a programmer's error.
  public static func days(_ count: Int, calendar: Calendar) -> MaxAge {
    precondition((0...dayLimit).contains(count), "a maximum age of \(count) days")
    return MaxAge(rule: .days(count, calendar))
  }
}

extension MaxAge {
  /// The first moment at which something saved at `date` is too old; nil for never.
  ///
  /// Deciding by this date and not by a subtraction makes "exactly at the limit" exact: the caller
  /// who adds the limit to a date and the store that adds it round alike.
  func end(from date: Date) -> Date? {
    guard date.timeIntervalSinceReferenceDate.isFinite else { return .distantPast }
    switch rule {
    case .unlimited: return nil
    case .seconds(let count): return date.addingTimeInterval(count)
    case .days(let count, let calendar):
      return calendar.date(byAdding: .day, value: count, to: date) ?? .distantPast
    }
  }

  /// Whether something saved at `date` is young enough at `now`.
  func admits(_ date: Date, at now: Date) -> Bool {
    guard let end = end(from: date) else { return true }
    return now < end
  }

  /// About how long it is, in seconds; nil for unlimited.
  var approximateSeconds: Double? {
    switch rule {
    case .unlimited: nil
    case .seconds(let count): count
    case .days(let count, _): Double(count) * 86_400
    }
  }
}

// Stored with a cache's registration, so that tools can judge entries: {"unlimited": true},
// {"seconds": 604800} or {"days": 7, "calendar": {...}}.
extension MaxAge: Codable {
  private enum CodingKeys: String, CodingKey {
    case unlimited, seconds, days, calendar
  }

  /// Decodes a maximum age; one that could not have been made throws.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if let seconds = try container.decodeIfPresent(Double.self, forKey: .seconds) {
      rule = .seconds(seconds)
      guard seconds.isFinite && seconds >= 0 else {
        throw DecodingError.dataCorruptedError(
          forKey: .seconds, in: container, debugDescription: "\(seconds) seconds")
      }
    } else if let days = try container.decodeIfPresent(Int.self, forKey: .days) {
      rule = .days(days, try container.decode(Calendar.self, forKey: .calendar))
      guard (0...Self.dayLimit).contains(days) else {
        throw DecodingError.dataCorruptedError(
          forKey: .days, in: container, debugDescription: "\(days) days")
      }
    } else if try container.decode(Bool.self, forKey: .unlimited) {
      rule = .unlimited
    } else {
      throw DecodingError.dataCorruptedError(
        forKey: .unlimited, in: container, debugDescription: "no limit is given")
    }
  }

  /// Encodes the rule under its name.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch rule {
    case .unlimited: try container.encode(true, forKey: .unlimited)
    case .seconds(let count): try container.encode(count, forKey: .seconds)
    case .days(let count, let calendar):
      try container.encode(count, forKey: .days)
      try container.encode(calendar, forKey: .calendar)
    }
  }
}

extension MaxAge: CustomStringConvertible {
  /// The limit in words, such as `7 days`, `1 hour`, `90 seconds`, `unlimited`.
  ///
  /// In the largest unit of which it is a whole number.
  public var description: String {
    switch rule {
    case .unlimited: "unlimited"
    case .seconds(let count): Self.words(forSeconds: count)
    case .days(let count, let calendar):
      "\(count) days of the \(calendar.identifier) calendar in \(calendar.timeZone.identifier)"
    }
  }

  private static func words(forSeconds seconds: Double) -> String {
    let units = [(86_400.0, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
    let unit = units.first { length, _ in
      seconds >= length && seconds.remainder(dividingBy: length) == 0
    }
    guard let (length, name) = unit, seconds < 1e15 else {
      return seconds == 0 ? "0 seconds" : "\(seconds) seconds"
    }
    let count = Int(seconds / length)
    return "\(count) \(name)\(count == 1 ? "" : "s")"
  }
}
