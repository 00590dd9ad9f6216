package import Foundation
import Larder

/// Writes dates and time spans in reports, and parses those of commands.
package enum Moment {
  /// The current system time.
  package static func now() -> Date { Store.Options().clock.now() }

  /// Parses an ISO 8601 date (`2026-01-31`, `2026-01-31T12:00:00Z`), or a span from `now` with a
  /// sign and a unit of s, m, h, d or w (`+8d`, `-90s`).
  package static func parse(_ text: String, from now: Date) throws(InspectionError) -> Date {
    if let span = span(text) { return now.addingTimeInterval(span) }
    let day = Date.ISO8601FormatStyle().year().month().day()
    for style in [Date.ISO8601FormatStyle(includingFractionalSeconds: true), day] {
      do {
        return try Date(text, strategy: style)
      } catch {
        // Tries the next format.
      }
    }
    throw InspectionError(
      .usage, "\(text) is not a valid time: write 2026-01-31T12:00:00Z, 2026-01-31, +8d or -90s")
  }

  private static func span(_ text: String) -> TimeInterval? {
    guard let sign = text.first, sign == "+" || sign == "-", let unit = text.last,
      let seconds = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800][unit],
      let count = UInt32(text.dropFirst().dropLast())
    else { return nil }
    return (sign == "-" ? -1 : 1) * Double(count) * Double(seconds)
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
