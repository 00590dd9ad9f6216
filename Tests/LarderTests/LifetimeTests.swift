import AcceptanceRows
import Foundation
import LarderTesting
import LarderTestSupport
import Testing

@testable import Larder

/// An entry's freshness is exact to the second, in the calendar of its lifetime.
@Suite(.acceptance) struct LifetimeTests {
  /// When seven calendar days end across changes of clocks.
  static let calendarRows: [(id: String, zone: String, saved: String, expires: String)] = [
    ("TIM-01", "UTC", "2025-03-05T17:00:00Z", "2025-03-12T17:00:00Z"),
    ("TIM-02", "America/New_York", "2025-03-05T17:00:00Z", "2025-03-12T16:00:00Z"),
    ("TIM-03", "America/New_York", "2025-10-29T16:00:00Z", "2025-11-05T17:00:00Z"),
    ("TIM-04", "Europe/London", "2025-03-26T12:00:00Z", "2025-04-02T11:00:00Z"),
    ("TIM-05", "Australia/Lord_Howe", "2025-10-01T00:00:00Z", "2025-10-07T23:30:00Z"),
    ("TIM-06", "America/New_York", "2025-03-02T07:30:00Z", "2025-03-09T07:30:00Z"),
    ("TIM-07", "America/New_York", "2025-10-26T05:30:00Z", "2025-11-02T05:30:00Z"),
  ]

  @Test("Seven calendar days end at the same time of day.")
  func calendarDays() throws {
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

  @Test("An entry is fresh below the limit, and expired at the limit and above.")
  func limit() {
    let saved = Date(timeIntervalSinceReferenceDate: 788_918_400.123_456_7)

    for lifetime in [Lifetime.days(7), .seconds(604_800), .fresh(for: .days(7))] {
      #expect(lifetime.freshness(of: saved, at: saved + (604_800 - 1)) == .fresh)
      #expect(lifetime.freshness(of: saved, at: saved + 604_800) == .expired)
      #expect(lifetime.freshness(of: saved, at: saved + (604_800 + 1)) == .expired)
    }
  }

  @Test("The limit is exact for dates whose sum with it must be rounded.")
  func limitOfAnyDate() {
    var random = SplitMix64(seed: 7)
    for _ in 0..<10_000 {
      let saved = Date(timeIntervalSinceReferenceDate: .random(in: -1e9...1e9, using: &random))
      let end = saved + 604_800
      let before = Date(
        timeIntervalSinceReferenceDate: end.timeIntervalSinceReferenceDate.nextDown)
      #expect(Lifetime.days(7).freshness(of: saved, at: end) == .expired)
      #expect(Lifetime.days(7).freshness(of: saved, at: before) == .fresh)
    }
  }

  @Test("An entry saved in the future is fresh, with a limit of zero, too.")
  func future() {
    let now = Date(timeIntervalSinceReferenceDate: 0)

    #expect(Lifetime.days(7).freshness(of: now + 1e6, at: now) == .fresh)
    #expect(Lifetime.days(0).freshness(of: now + 1, at: now) == .fresh)
    #expect(Lifetime.days(0).freshness(of: now, at: now) == .expired)
  }

  @Test("With no limit, an entry of any age is fresh.")
  func unlimited() {
    #expect(Lifetime.unlimited.freshness(of: .distantPast, at: .distantFuture) == .fresh)
    #expect(Lifetime.unlimited.expiry(from: .distantPast) == nil)
  }

  @Test("Seven days are 604,800 seconds by default.")
  func daysOfUTC() {
    #expect(Lifetime.days(7) == .seconds(604_800))
  }

  @Test("Limits out of range trap.", .timeLimit(.minutes(30)))
  func refusedLimits() async {
    await #expect(processExitsWith: .failure) { _ = MaxAge.days(-1) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.days(3_650_001) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.days(-1, calendar: .current) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.seconds(-0.5) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.seconds(.nan) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.seconds(.infinity) }
    _ = MaxAge.days(3_650_000)
  }

  @Test("An entry with an invalid date is expired.")
  func invalidDates() {
    let now = Date(timeIntervalSinceReferenceDate: 0)
    for value in [Double.nan, .infinity, -.infinity] {
      let saved = Date(timeIntervalSinceReferenceDate: value)
      #expect(Lifetime.days(7).freshness(of: saved, at: now) == .expired)
      #expect(Lifetime.unlimited.freshness(of: saved, at: now) == .expired)
    }
  }

  @Test("An entry becomes stale when its fresh time ends.")
  func stale() {
    let saved = Date(timeIntervalSinceReferenceDate: 0)
    let lifetime = Lifetime.fresh(for: .seconds(10), thenStaleFor: .seconds(5))

    #expect(lifetime.freshness(of: saved, at: saved + 9) == .fresh)
    #expect(lifetime.freshness(of: saved, at: saved + 10) == .stale)
    #expect(lifetime.freshness(of: saved, at: saved + 14) == .stale)
    #expect(lifetime.freshness(of: saved, at: saved + 15) == .expired)
    #expect(lifetime.expiry(from: saved) == saved + 15)
    #expect(
      Lifetime.fresh(for: .seconds(10), thenStaleFor: .unlimited).expiry(from: saved) == nil)
  }

  @Test("A maximum age at the call can only shorten the lifetime.")
  func maximumAge() {
    let saved = Date(timeIntervalSinceReferenceDate: 0)
    let lifetime = Lifetime.fresh(for: .seconds(10), thenStaleFor: .seconds(5))

    #expect(lifetime.freshness(of: saved, at: saved + 3, maxAge: .seconds(3)) == .expired)
    #expect(lifetime.freshness(of: saved, at: saved + 2, maxAge: .seconds(3)) == .fresh)
    #expect(lifetime.freshness(of: saved, at: saved + 12, maxAge: .unlimited) == .stale)
    #expect(lifetime.freshness(of: saved, at: saved + 20, maxAge: .days(1)) == .expired)
  }

  @Test("A bucket ends at or soon after the expiry of its entries, never before.")
  func buckets() {
    var random = SplitMix64(seed: 11)
    for _ in 0..<10_000 {
      let seconds = Double.random(in: 0...1e8, using: &random)
      let saved = Date(timeIntervalSinceReferenceDate: .random(in: -1e9...1e9, using: &random))
      let end = saved + seconds
      let bucket = Double(ExpiryNotes.bucket(savedAt: saved, expiresAt: end))
      #expect(bucket >= end.timeIntervalSinceReferenceDate)
      #expect(bucket - end.timeIntervalSinceReferenceDate <= max(1, seconds / 64))
    }
    let start = Date(timeIntervalSinceReferenceDate: 0)
    #expect(ExpiryNotes.bucket(savedAt: start, expiresAt: start + 604_800) == 606_208)
    #expect(ExpiryNotes.bucket(savedAt: start, expiresAt: start + 0.1) == 1)
  }

  @Test(
    "Dates of a damaged record have a bucket, too.",
    arguments: [
      (0.0, 1e300, Int64.max), (-1e300, 1e300, .max), (0, .infinity, .max), (0, .nan, .max),
      (.nan, 5, 5), (0, -1e300, .min), (0, -.infinity, .min), (-.infinity, 5.5, 1 << 40),
      (10, 5.5, 6),
    ])
  func damagedDates(savedAt: Double, expiresAt: Double, bucket: Int64) {
    #expect(
      ExpiryNotes.bucket(
        savedAt: Date(timeIntervalSinceReferenceDate: savedAt),
        expiresAt: Date(timeIntervalSinceReferenceDate: expiresAt)) == bucket)
  }

  @Test("Lifetimes round-trip through JSON.")
  func stored() throws {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(identifier: "Europe/London"))
    for lifetime in [
      Lifetime.unlimited, .days(7), .seconds(0.1), .days(3, calendar: calendar),
      .fresh(for: .days(7), thenStaleFor: .unlimited),
    ] {
      let data = try JSONEncoder().encode(lifetime)
      #expect(try JSONDecoder().decode(Lifetime.self, from: data) == lifetime)
    }
  }

  @Test(
    "A stored limit out of range is refused.",
    arguments: [
      #"{"seconds": -1}"#, #"{"days": 3650001, "calendar": {"identifier": "gregorian"}}"#,
      #"{"unlimited": false}"#, "{}",
    ])
  func storedOutOfRange(json: String) {
    #expect(throws: (any Error).self) {
      try JSONDecoder().decode(MaxAge.self, from: Data(json.utf8))
    }
  }

  @Test("Limits have units, and spans from outside are checked.")
  func units() throws {
    #expect(MaxAge.minutes(1.5) == .seconds(90))
    #expect(MaxAge.hours(2) == .seconds(7200))
    #expect(MaxAge.weeks(1) == .days(7))
    #expect(Lifetime.minutes(10) == .seconds(600))
    #expect(Lifetime.hours(24) == .days(1))
    #expect(Lifetime.weeks(1) == .days(7))
    #expect(try MaxAge(.milliseconds(1500)) == .seconds(1.5))
    #expect(try MaxAge(.seconds(2363)) == .seconds(2363))
    #expect(try MaxAge(.zero) == .seconds(0))
    #expect(throwsInvalidArgument { try MaxAge(.seconds(-1)) })
    #expect(throwsInvalidArgument { try MaxAge(.nanoseconds(-1)) })
  }

  @Test("Limits describe themselves in plain words.")
  func descriptions() {
    #expect("\(Lifetime.days(7))" == "fresh for 7 days")
    #expect("\(MaxAge.seconds(90))" == "90 seconds")
    #expect("\(MaxAge.days(1))" == "1 day")
    let utc = Calendar(identifier: .iso8601)
    #expect("\(MaxAge.days(1, calendar: utc))".hasPrefix("1 day of the iso8601 calendar in "))
    for (seconds, text) in [
      (0, "0 seconds"), (0.5, "0.5 seconds"), (1, "1 second"), (180, "3 minutes"),
      (43_200, "12 hours"), (86_400, "1 day"), (1_000_000, "1,000,000 seconds"),
      (1234.5, "1,234.5 seconds"), (86_400_000, "1,000 days"), (999, "999 seconds"),
      (86_400 * 3_650_000, "3,650,000 days"), (1e300, "1e+300 seconds"), (1e-7, "1e-07 seconds"),
      (123_456.75, "123,456.75 seconds"),
    ] {
      #expect("\(Lifetime.seconds(seconds))" == "fresh for \(text)")
    }
    #expect(
      "\(Lifetime.fresh(for: .days(7), thenStaleFor: .unlimited))"
        == "fresh for 7 days, then stale without end")
    #expect("\(Lifetime.unlimited)" == "never expires")
  }
}
