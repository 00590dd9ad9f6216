package import Foundation
import Larder

/// Writes dates and time spans in reports, and parses them in commands.
package enum Moment {
  /// The current system time.
  package static func now() -> Date { Store.Options().clock.now() }

  /// Parses the value of `--now` as ``parse(_:from:)`` does; without a value, returns the current
  /// time.
  package static func parse(_ text: String?) throws(InspectionError) -> Date {
    let clock = now()
    return if let text { try parse(text, from: clock) } else { clock }
  }

  /// Parses an ISO 8601 date (`2026-01-31`, `2026-01-31T12:00:00Z`), or a span from `now` with a
  /// sign and a unit of s, m, h, d or w (`+8d`, `-90s`).
  package static func parse(_ text: String, from now: Date) throws(InspectionError) -> Date {
    if let span = span(text) { return now.addingTimeInterval(span) }
    if let date = date(text) { return date }
    throw InspectionError(
      .usage, "\(text) is not a valid time: write 2026-01-31T12:00:00Z, 2026-01-31, +8d or -90s")
  }

  /// The date of a text in ISO 8601 (`2026-01-31`, `2026-01-31T12:00:00Z`); nil for any other.
  static func date(_ text: String) -> Date? {
    guard isOfCalendar(text) else { return nil }
    let day = Date.ISO8601FormatStyle().year().month().day()
    let time = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    do {
      return try Date(text, strategy: text.utf8.count == 10 ? day : time)
    } catch {
      return nil
    }
  }

  /// Whether a text is a day that exists, alone or with a time that exists and its zone.
  ///
  /// Foundation takes February 30 for March 1, and 25:00 for 1:00, and ignores what follows.
  private static func isOfCalendar(_ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    func take(_ character: Unicode.Scalar) -> Bool {
      guard rest.first == UInt8(ascii: character) else { return false }
      rest.removeFirst()
      return true
    }
    func number(_ count: Int, _ range: ClosedRange<Int>) -> Int? {
      let digits = rest.prefix(count)
      guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
      }
      rest.removeFirst(count)
      let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
      return range.contains(number) ? number : nil
    }
    guard let year = number(4, 1...9999), take("-"), let month = number(2, 1...12), take("-"),
      let day = number(2, 1...31)
    else { return false }
    let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard day <= days[month - 1] else { return false }
    if rest.isEmpty { return true }
    guard take("T"), number(2, 0...23) != nil, take(":"), number(2, 0...59) != nil, take(":"),
      number(2, 0...59) != nil
    else { return false }
    if take(".") {
      guard number(1, 0...9) != nil else { return false }
      while number(1, 0...9) != nil {}
    }
    if take("Z") { return rest.isEmpty }
    guard take("+") || take("-"), number(2, 0...23) != nil else { return false }
    _ = take(":")
    return number(2, 0...59) != nil && rest.isEmpty
  }

  private static func span(_ text: String) -> TimeInterval? {
    guard let sign = text.first, sign == "+" || sign == "-",
      let seconds = seconds(ofSpan: String(text.dropFirst()))
    else { return nil }
    return sign == "-" ? -seconds : seconds
  }

  /// The seconds of a span such as `90s`, `12h` or `7d`; nil for any other text.
  package static func seconds(ofSpan text: String) -> Double? {
    guard let unit = text.last,
      let seconds = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800][unit],
      let count = UInt32(text.dropLast())
    else { return nil }
    return Double(count) * Double(seconds)
  }

  /// The date in ISO 8601 and UTC, to the millisecond; nil outside the years 1 to 9999.
  static func text(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard seconds >= -63_113_904_000, seconds < 252_423_993_600 else { return nil }
    return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  /// The date as ``text(_:)``; outside of the calendar, its seconds since 2001.
  static func anyText(_ date: Date) -> String {
    text(date) ?? "\(date.timeIntervalSinceReferenceDate) s since 2001"
  }

  /// The date, and how long ago it was, or in what time it will be.
  static func text(_ date: Date, relativeTo now: Date) -> String {
    let span = date.timeIntervalSince(now)
    let distance = text(ofSpan: abs(span))
    return "\(anyText(date)), " + (span > 0 ? "in \(distance)" : "\(distance) ago")
  }

  /// The bits of the date's seconds since 2001, in hex, which the ISO 8601 text may round.
  static func bits(_ date: Date) -> String {
    let digits = String(date.timeIntervalSinceReferenceDate.bitPattern, radix: 16)
    return "0x" + String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// A span in its two largest units, rounded down, such as `6d 23h`.
  static func text(ofSpan seconds: TimeInterval) -> String {
    guard seconds.isFinite, abs(seconds) < 1e15 else { return "-" }
    var rest = Int(abs(seconds))
    var parts: [String] = []
    for (unit, size) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
      let count = rest / size
      rest %= size
      if count > 0 || !parts.isEmpty { parts.append("\(count)\(unit)") }
    }
    let text = parts.prefix(2).filter { !$0.hasPrefix("0") }.joined(separator: " ")
    return text.isEmpty ? "0s" : (seconds < 0 ? "-" : "") + text
  }
}
