import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// Expiry is exact while the local clock shows the same hour twice.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct RepeatedHourTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var testDescription: String
    let zone: String
    let saved: String
    /// When seven days of that zone's calendar are over.
    let expires: String
  }

  static let newYork = "America/New_York"
  /// Its clocks go back by half an hour.
  static let lordHowe = "Australia/Lord_Howe"

  static let rows = [
    Row(
      testDescription: "saved in the first 01:30 of New York", zone: newYork,
      saved: "2025-11-02T05:30:00Z", expires: "2025-11-09T06:30:00Z"),
    Row(
      testDescription: "saved in the second 01:30 of New York", zone: newYork,
      saved: "2025-11-02T06:30:00Z", expires: "2025-11-09T06:30:00Z"),
    Row(
      testDescription: "over in the first 01:30 of New York", zone: newYork,
      saved: "2025-10-26T05:30:00Z", expires: "2025-11-02T05:30:00Z"),
    Row(
      testDescription: "saved in the first 01:45 of Lord Howe", zone: lordHowe,
      saved: "2025-04-05T14:45:00Z", expires: "2025-04-12T15:15:00Z"),
    Row(
      testDescription: "saved in the second 01:45 of Lord Howe", zone: lordHowe,
      saved: "2025-04-05T15:15:00Z", expires: "2025-04-12T15:15:00Z"),
    Row(
      testDescription: "over in the first 01:45 of Lord Howe", zone: lordHowe,
      saved: "2025-03-29T14:45:00Z", expires: "2025-04-05T14:45:00Z"),
  ]

  @Test("Seven days of a calendar, as a lifetime, end at the same time of day.", arguments: rows)
  func lifetime(row: Row) async throws {
    let bench = try ImageBench(lifetime: .days(7, calendar: calendar(row)))
    let expires = try date(row.expires)
    bench.clock.set(try date(row.saved))
    try bench.cache.save(ImageBench.bytes, for: ImageBench.url)

    bench.clock.set(expires - 1)
    #expect(try await bench.loader.load(ImageBench.url).value == ImageBench.bytes)
    for late in [0, 1, 3600] as [TimeInterval] {
      bench.clock.set(expires + late)
      let error = await feedError { try await bench.loader.load(ImageBench.url) }
      #expect(error?.reason == .connectivity)
    }
  }

  @Test(
    "Seven days of a calendar, as a load's maximum age, end at the same time of day.",
    arguments: rows)
  func maximumAge(row: Row) async throws {
    let bench = try Bench(.essentialFeed)
    let week = MaxAge.days(7, calendar: try calendar(row))
    let expires = try date(row.expires)
    bench.clock.set(try date(row.saved))
    try bench.save(1)

    bench.clock.set(expires - 1)
    #expect(try await bench.handles.load(nil, week).items == bench.items(1))
    for late in [0, 1, 3600] as [TimeInterval] {
      bench.clock.set(expires + late)
      let error = await feedError { try await bench.handles.load(nil, week) }
      #expect(error?.reason == .connectivity)
    }
  }

  @Test("Seven days by default are 604,800 seconds in any hour.", arguments: rows)
  func seconds(row: Row) async throws {
    for feed in [Feed.genres, .imageFeed, .characters] {
      let bench = try Bench(feed)
      bench.clock.set(try date(row.saved))
      try bench.save(1)

      bench.clock.advance(by: .seconds(604_800 - 1))
      #expect(try await bench.handles.load(nil, nil).items == bench.items(1))
      for _ in 1...2 {
        bench.clock.advance(by: .seconds(1))
        let error = await feedError { try await bench.handles.load(nil, nil) }
        #expect(error?.reason == .connectivity)
      }
    }
  }

  private func calendar(_ row: Row) throws -> Calendar {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(identifier: row.zone))
    return calendar
  }

  private func date(_ text: String) throws -> Date { try Date(text, strategy: .iso8601) }
}
