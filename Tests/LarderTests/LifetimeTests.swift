import Foundation
import Testing

@testable import Larder

/// Whether something is young enough is decided to the second, by the calendar that was asked for.
@Suite struct LifetimeTests {
  /// Rows of what seven calendar days are worth across changes of clocks.
  static let calendarRows: [(id: String, zone: String, saved: String, expires: String)] = [
    ("TIM-01", "UTC", "2025-03-05T17:00:00Z", "2025-03-12T17:00:00Z"),
    ("TIM-02", "America/New_York", "2025-03-05T17:00:00Z", "2025-03-12T16:00:00Z"),
    ("TIM-03", "America/New_York", "2025-10-29T16:00:00Z", "2025-11-05T17:00:00Z"),
    ("TIM-04", "Europe/London", "2025-03-26T12:00:00Z", "2025-04-02T11:00:00Z"),
    ("TIM-05", "Australia/Lord_Howe", "2025-10-01T00:00:00Z", "2025-10-07T23:30:00Z"),
    ("TIM-06", "America/New_York", "2025-03-02T07:30:00Z", "2025-03-09T07:30:00Z"),
    ("TIM-07", "America/New_York", "2025-10-26T05:30:00Z", "2025-11-02T05:30:00Z"),
  ]

  @Test("TIM-01 to TIM-07 and TIM-16: seven calendar days end at the same time of day")
  func calendarDaysFollowTheCalendar() throws {
    for row in Self.calendarRows {
      var calendar = Calendar(identifier: .gregorian)
      calendar.timeZone = try #require(TimeZone(identifier: row.zone))
      let saved = try Date(row.saved, strategy: .iso8601)
      let expires = try Date(row.expires, strategy: .iso8601)
      let lifetime = Lifetime.days(7, calendar: calendar)

      #expect(lifetime.expiry(from: saved) == expires, "\(row.id)")
      #expect(lifetime.freshness(of: saved, at: expires - 1) == .fresh, "\(row.id)")
      #expect(lifetime.freshness(of: saved, at: expires) == .expired, "\(row.id)")
      #expect(lifetime.freshness(of: saved, at: expires + 1) == .expired, "\(row.id)")
    }
  }
}
