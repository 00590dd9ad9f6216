public import Foundation

/// A maximum age for an entry.
///
/// An entry is within the limit while its age is below it; at exactly the limit it is too old.
///
/// ```swift
/// MaxAge.days(7)                          // 604,800 seconds, in every time zone
/// MaxAge.days(7, calendar: .current)      // until the same time of day, seven days later
/// MaxAge.seconds(90)
/// MaxAge.unlimited
/// ```
///
/// An entry that was saved in the future, because the clock was set back, is within every limit. An
/// entry whose date is not a number is always too old.
public struct MaxAge: Sendable, Hashable {
  enum Rule: Sendable, Hashable {
    case unlimited
    case seconds(Double)
    case days(Int, Calendar)
  }

  /// The largest number of days: ten thousand years.
  ///
  /// Beyond its own range, a calendar returns the date it was given, and every entry would expire
  /// at once.
  static let dayLimit = 3_650_000

  let rule: Rule

  /// No limit.
  public static var unlimited: MaxAge { MaxAge(rule: .unlimited) }

  /// A limit of `count` seconds.
  ///
  /// `count` must be finite and not negative; any other value is a programmer error.
  public static func seconds(_ count: Double) -> MaxAge {
    precondition(
      count.isFinite && count >= 0,
      "a maximum age of \(count) seconds; it must be finite and not negative")
    return MaxAge(rule: .seconds(count))
  }

  /// A limit of `count` minutes.
  ///
  /// `count` must be finite and not negative; any other value is a programmer error.
  public static func minutes(_ count: Double) -> MaxAge { .seconds(count * 60) }

  /// A limit of `count` hours.
  ///
  /// `count` must be finite and not negative; any other value is a programmer error.
  public static func hours(_ count: Double) -> MaxAge { .seconds(count * 3600) }

  /// A limit of `count` weeks of seven days of 86,400 seconds.
  ///
  /// `count` must be 0 to 521,428; any other value is a programmer error.
  public static func weeks(_ count: Int) -> MaxAge {
    precondition(
      (0...dayLimit / 7).contains(count),
      "a maximum age of \(count) weeks is outside 0 to \(dayLimit / 7)")
    return .days(7 * count)
  }

  /// A limit of `count` days of 86,400 seconds, as in UTC.
  ///
  /// `count` must be 0 to 3,650,000; any other value is a programmer error.
  public static func days(_ count: Int) -> MaxAge {
    precondition(
      (0...dayLimit).contains(count), "a maximum age of \(count) days is outside 0 to \(dayLimit)")
    return .seconds(Double(count) * 86_400)
  }

  /// A limit of `count` days of `calendar`, in its time zone.
  ///
  /// It ends at the same time of day, so it is an hour longer or shorter across a daylight saving
  /// change. `count` must be 0 to 3,650,000; any other value is a programmer error.
  public static func days(_ count: Int, calendar: Calendar) -> MaxAge {
    precondition(
      (0...dayLimit).contains(count), "a maximum age of \(count) days is outside 0 to \(dayLimit)")
    return MaxAge(rule: .days(count, calendar))
  }
}

extension MaxAge {
  /// A limit from outside the program, such as a header or a configuration.
  ///
  /// ```swift
  /// let limit = try MaxAge(.seconds(90))
  /// ```
  ///
  /// - Parameter span: The limit; not negative.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if it is negative.
  public init(_ span: Duration) throws {
    guard span >= .zero else {
      throw StoreError.invalidArgument("a maximum age of \(span); it must not be negative")
    }
    rule = .seconds(span.inSeconds)
  }
}

extension MaxAge {
  /// The first moment at which an entry saved at `date` is too old; nil for never.
  ///
  /// Comparing dates, instead of subtracting them, makes "exactly at the limit" exact: a caller
  /// that adds the limit to a date gets the same rounding as the store.
  func end(from date: Date) -> Date? {
    guard date.timeIntervalSinceReferenceDate.isFinite else { return .distantPast }
    switch rule {
    case .unlimited: return nil
    case .seconds(let count): return date.addingTimeInterval(count)
    case .days(let count, let calendar):
      return calendar.date(byAdding: .day, value: count, to: date) ?? .distantPast
    }
  }

  /// Whether an entry saved at `date` is within the limit at `now`.
  package func admits(_ date: Date, at now: Date) -> Bool {
    guard let end = end(from: date) else { return true }
    return now < end
  }

  /// The approximate limit in seconds; nil for unlimited.
  var approximateSeconds: Double? {
    switch rule {
    case .unlimited: nil
    case .seconds(let count): count
    case .days(let count, _): Double(count) * 86_400
    }
  }
}

// Stored in a cache's registration, so that tools can compute the state of its entries:
// {"unlimited": true}, {"seconds": 604800} or {"days": 7, "calendar": {...}}.
extension MaxAge: Codable {
  private enum CodingKeys: String, CodingKey {
    case unlimited, seconds, days, calendar
  }

  /// Decodes a maximum age; throws if the limit is outside its range.
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
        forKey: .unlimited, in: container, debugDescription: "unlimited is false")
    }
  }

  /// Encodes the limit as `unlimited`, as `seconds`, or as `days` with their `calendar`.
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
  /// The limit as text, such as `7 days`, `12 hours`, `90 seconds`, `unlimited`.
  ///
  /// The unit is the largest one that gives a whole number. Commas separate thousands.
  public var description: String {
    switch rule {
    case .unlimited: "unlimited"
    case .seconds(let count): Self.words(forSeconds: count)
    case .days(let count, let calendar):
      "\(Self.words(Double(count), "day")) of the \(calendar.identifier) calendar "
        + "in \(calendar.timeZone.identifier)"
    }
  }

  private static func words(forSeconds seconds: Double) -> String {
    let units = [(86_400.0, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
    let unit = units.first { length, _ in
      seconds >= length && seconds.remainder(dividingBy: length) == 0
    }
    guard let (length, name) = unit, seconds < 1e15 else { return words(seconds, "second") }
    return words(seconds / length, name)
  }

  private static func words(_ count: Double, _ unit: String) -> String {
    "\(grouped(count)) \(unit)\(count == 1 ? "" : "s")"
  }

  /// A number with commas between its thousands, as in `1,234.5`.
  private static func grouped(_ number: Double) -> String {
    guard number < 1e15 else { return "\(number)" }
    let text = number == number.rounded() ? "\(Int(number))" : "\(number)"
    guard number >= 1000 else { return text }
    let whole = text.prefix { $0 != "." }
    let groups = whole.reversed().enumerated().reduce("") { groups, digit in
      "\(digit.element)\(digit.offset > 0 && digit.offset % 3 == 0 ? "," : "")\(groups)"
    }
    return groups + text[whole.endIndex...]
  }
}
