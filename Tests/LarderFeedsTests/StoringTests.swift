import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// What header fields of a response mean for a feed with HTTP caching, by RFC 9111 and RFC 5861.
@Suite(.timeLimit(.minutes(10))) struct StoringTests {
  /// A response, and what becomes of it in a cache where values are fresh for an hour and stale for
  /// a day, in a feed that allows stale values only where the response does.
  struct Row: Sendable, CustomTestStringConvertible {
    /// The section, and what it says.
    let testDescription: String
    /// The header fields, one on each line.
    var fields = ""
    var isSaved = true
    /// How long it is fresh, in seconds.
    var fresh = 3600.0
    /// How long after that it is returned when the server is in trouble.
    var ifError = 0.0
    /// How long after that it is returned while it is refreshed.
    var whileRefreshing = 0.0
    /// Whether a stale value may be returned if the policy allows that, too.
    var mayBeStale = true
    /// The condition of the next request, as a header field.
    var condition = ""

    init(_ text: String, _ fields: String, _ change: (inout Row) -> Void = { _ in }) {
      testDescription = text
      self.fields = fields
      change(&self)
    }
  }

  /// A row of a response that is fresh for so long.
  private static func fresh(_ seconds: Double, _ fields: String, _ text: String) -> Row {
    Row(text, fields) { $0.fresh = seconds }
  }

  private static func unsaved(_ fields: String, _ text: String) -> Row {
    Row(text, fields) { $0.isSaved = false }
  }

  private static func strict(_ seconds: Double, _ fields: String, _ text: String) -> Row {
    Row(text, fields) { ($0.fresh, $0.mayBeStale) = (seconds, false) }
  }

  // The clock shows 2026-01-01 00:00 UTC.
  private static let ages = [
    fresh(3600, "", "4.2.2: without a lifetime, the cache's"),
    fresh(60, "Cache-Control: max-age=60", "5.2.2.1: max-age"),
    fresh(0, "Cache-Control: max-age=0", "5.2.2.1: max-age of zero"),
    fresh(60, "Cache-Control: MAX-AGE=60", "5.2: names in any case"),
    fresh(60, "Cache-Control: max-age=\"60\"", "5.2: a quoted argument"),
    fresh(60, "Cache-Control: , max-age=60 ,,", "RFC 9110 5.6.1: empty elements of a list"),
    fresh(60, "Cache-Control: foo=bar, max-age=60", "5.2.3: an unknown directive"),
    fresh(60, "Cache-Control: foo=\"a, max-age=5\", max-age=60", "5.2: a comma in quotation marks"),
    fresh(60, "Cache-Control: max-age=60\nCache-Control: public", "RFC 9110 5.3: two fields"),
    fresh(60, "Cache-Control: max-age=60, max-age=600", "4.2.1: the first of two"),
    fresh(0, "Cache-Control: max-age=1.5", "4.2.1: an invalid number is stale"),
    fresh(0, "Cache-Control: max-age=-1", "4.2.1: a negative number is stale"),
    fresh(0, "Cache-Control: max-age", "4.2.1: a missing number is stale"),
    fresh(2_147_483_648, "Cache-Control: max-age=99999999999999999999", "1.2.2: an overflow"),
    fresh(60, "Cache-Control: s-maxage=10, max-age=60", "5.2.2.10: s-maxage is for shared caches"),
    fresh(3600, "Cache-Control: s-maxage=10", "5.2.2.10: s-maxage alone"),
    fresh(60, "Cache-Control: public, max-age=60", "5.2.2.9: public"),
    fresh(60, "Cache-Control: private, max-age=60", "5.2.2.7: private, in a private cache"),
    fresh(3600, "Cache-Control: private=\"x-user\"", "5.2.2.7: private with a field name"),
    fresh(60, "Cache-Control: immutable, max-age=60", "RFC 8246: immutable"),
    fresh(50, "Cache-Control: max-age=60\nAge: 10", "4.2.3: Age"),
    fresh(0, "Cache-Control: max-age=60\nAge: 60", "4.2.3: Age of max-age"),
    fresh(0, "Cache-Control: max-age=60\nAge: 600", "4.2.3: Age above max-age"),
    fresh(50, "Cache-Control: max-age=60\nAge: 10, 20", "5.1: the first Age of a list"),
    fresh(60, "Cache-Control: max-age=60\nAge: old", "5.1: an invalid Age is ignored"),
    fresh(60, "Cache-Control: max-age=60\nAge: -5", "5.1: a negative Age is ignored"),
  ]

  private static let dates = [
    fresh(
      100, "Date: Thu, 01 Jan 2026 09:00:00 GMT\nExpires: Thu, 01 Jan 2026 09:01:40 GMT",
      "4.2.1: Expires less Date"),
    fresh(100, "Expires: Thu, 01 Jan 2026 00:01:40 GMT", "5.3: Expires without Date"),
    fresh(
      60, "Expires: Thu, 01 Jan 2026 00:01:40 GMT\nCache-Control: max-age=60",
      "5.3: max-age before Expires"),
    fresh(70, "Expires: Thu, 01 Jan 2026 00:01:40 GMT\nAge: 30", "4.2.3: Expires and Age"),
    fresh(0, "Expires: 0", "5.3: an invalid date is in the past"),
    fresh(0, "Expires: Thu, 01 Jan 2015 00:00:00 GMT", "5.3: a date in the past"),
    fresh(100, "Expires: Thursday, 01-Jan-26 00:01:40 GMT", "RFC 9110 5.6.7: a date of RFC 850"),
    fresh(100, "Expires: Thu Jan  1 00:01:40 2026", "RFC 9110 5.6.7: a date of asctime"),
  ]

  private static let storing = [
    unsaved("Cache-Control: no-store", "5.2.2.5: no-store"),
    unsaved("Cache-Control: no-store, max-age=60", "5.2.2.5: no-store and max-age"),
    fresh(
      60, "Cache-Control: no-store, must-understand, max-age=60",
      "5.2.2.3: must-understand with a status that is understood"),
    strict(0, "Cache-Control: no-cache", "5.2.2.4: no-cache"),
    strict(0, "Cache-Control: no-cache, max-age=60", "5.2.2.4: no-cache and max-age"),
    strict(0, "Cache-Control: no-cache=\"x-a\", max-age=60", "5.2.2.4: no-cache with a field name"),
    strict(60, "Cache-Control: must-revalidate, max-age=60", "5.2.2.2: must-revalidate"),
    fresh(60, "Cache-Control: proxy-revalidate, max-age=60", "5.2.2.8: for shared caches"),
    fresh(3600, "Vary: Accept-Encoding", "4.1: Vary with Accept-Encoding"),
    unsaved("Vary: accept-encoding, Accept-Language", "4.1: Vary with another field"),
    unsaved("Vary: *", "4.1: Vary with an asterisk"),
    unsaved("Vary: Accept-Encoding\nVary: Cookie", "4.1: two fields"),
  ]

  private static let staleness = [
    Row("RFC 5861 4: stale-if-error", "Cache-Control: max-age=60, stale-if-error=100") {
      ($0.fresh, $0.ifError) = (60, 100)
    },
    Row("RFC 5861 3", "Cache-Control: max-age=60, stale-while-revalidate=100") {
      ($0.fresh, $0.whileRefreshing) = (60, 100)
    },
    Row("RFC 5861: beyond the cache's lifetime", "Cache-Control: max-age=1, stale-if-error=100000")
    { ($0.fresh, $0.ifError) = (1, 100_000) },
    fresh(60, "Cache-Control: max-age=60, stale-if-error=x", "an invalid number is ignored"),
    Row("RFC 5861 4: without a lifetime", "Cache-Control: stale-if-error=100") {
      $0.ifError = 100
    },
    Row("RFC 5861 3: without a lifetime", "Cache-Control: stale-while-revalidate=100000\nAge: 50") {
      $0.whileRefreshing = 100_000
    },
    Row(
      "RFC 5861 4: Age before the end of freshness",
      "Cache-Control: max-age=60, stale-if-error=100\nAge: 30"
    ) { ($0.fresh, $0.ifError) = (30, 100) },
    Row(
      "RFC 5861 3: Age within the window",
      "Cache-Control: max-age=60, stale-while-revalidate=100\nAge: 100"
    ) { ($0.fresh, $0.whileRefreshing) = (0, 60) },
    fresh(
      0, "Cache-Control: max-age=60, stale-while-revalidate=30, stale-if-error=540\nAge: 600",
      "RFC 5861: Age beyond the windows"),
    Row("RFC 5861 4: an invalid Expires", "Expires: 0\nCache-Control: stale-if-error=100\nAge: 40")
    { ($0.fresh, $0.ifError) = (0, 60) },
    Row(
      "RFC 5861 4: Expires within the window before Date",
      "Date: Thu, 01 Jan 2026 09:01:00 GMT\nExpires: Thu, 01 Jan 2026 09:00:00 GMT\n"
        + "Cache-Control: stale-if-error=100\nAge: 10"
    ) { ($0.fresh, $0.ifError) = (0, 30) },
    fresh(
      0,
      "Date: Fri, 02 Jan 2026 09:00:00 GMT\nExpires: Thu, 01 Jan 2026 09:00:00 GMT\n"
        + "Cache-Control: stale-while-revalidate=3600, stale-if-error=86400",
      "RFC 5861: Expires a day before Date"),
    strict(
      60, "Cache-Control: max-age=60, must-revalidate, stale-if-error=100",
      "RFC 5861 4: must-revalidate forbids it"),
    Row("4.3.1: ETag", "ETag: \"v1\"") { $0.condition = "If-None-Match: \"v1\"" },
    Row("4.3.1: a weak ETag", "ETag: W/\"v1\"") { $0.condition = "If-None-Match: W/\"v1\"" },
    Row("4.3.1: an ETag without quotation marks", "ETag: v1") {
      $0.condition = "If-None-Match: v1"
    },
    Row("4.3.1: a Last-Modified that is no date", "Last-Modified: yesterday"),
    Row("4.3.1: Last-Modified", "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT") {
      $0.condition = "If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT"
    },
    Row("4.3.1: both", "ETag: \"v1\"\nLast-Modified: Thu, 01 Jan 2015 00:00:00 GMT") {
      $0.condition = "If-None-Match: \"v1\""
    },
    Row("4.3.1: ETag with directives", "ETag: \"v1\"\nCache-Control: max-age=60, must-revalidate") {
      ($0.fresh, $0.mayBeStale, $0.condition) = (60, false, "If-None-Match: \"v1\"")
    },
  ]

  static let rows = ages + dates + storing + staleness

  private func bench(_ row: Row, staleIfError: Duration? = nil) async throws -> SharedBench {
    let bench = try SharedBench(
      .cacheThenRemote, [.words("a", fields: row.fields)], then: .status(503)
    ) {
      $0.httpCaching = true
      $0.loading.staleIfError = staleIfError
    }
    let loaded = try await bench.load()
    #expect(loaded.value == ["a"] && loaded.isSaved == row.isSaved && loaded.saveFailure == nil)
    return bench
  }

  @Test("A response is saved, or not.", arguments: rows)
  func saving(row: Row) async throws {
    #expect(try await bench(row).saved() == (row.isSaved ? ["a"] : nil))
  }

  @Test("A response is fresh up to its limit.", arguments: rows.filter(\.isSaved))
  func freshness(row: Row) async throws {
    let bench = try await bench(row)
    if row.fresh > 0 {
      bench.clock.advance(by: .seconds(row.fresh - 0.001))
      let loaded = try await bench.load()
      #expect(loaded.origin != .loaded && !loaded.isStale && loaded.remoteFailure == nil)
    }
    #expect(bench.client.requests.count == 1)
    bench.clock.set(ManualClock().now() + row.fresh)
    _ = await load(bench)
    try await bench.client.waitForRequests(2)
  }

  @Test("A stale response is returned within its own windows.", arguments: rows.filter(\.isSaved))
  func windows(row: Row) async throws {
    for (age, isIncluded) in [(0.5, true), (0.99, true), (1, false)] {
      let windows = [row.ifError, row.whileRefreshing]
      for window in windows where window > 0 || isIncluded {
        let bench = try await bench(row)
        // Without a window, a stale value is not returned at any time.
        bench.clock.advance(by: .seconds(row.fresh + age * max(window, 1)))
        let loaded = await load(bench)
        let isReturned = windows.contains { $0 > 0 && age * max(window, 1) < $0 }
        #expect((loaded?.value == ["a"]) == isReturned)
        if let loaded {
          #expect(loaded.isStale && loaded.isRefreshing == (row.whileRefreshing > 0))
        }
      }
    }
  }

  @Test("The policy can allow stale values unless the response forbids them.", arguments: rows)
  func policy(row: Row) async throws {
    guard row.isSaved else { return }
    let bench = try await bench(row, staleIfError: .seconds(Int.max))
    bench.clock.advance(by: .seconds(row.fresh + 1))
    #expect((await load(bench) != nil) == row.mayBeStale)
  }

  @Test("The next request asks whether the response is still right.", arguments: rows)
  func condition(row: Row) async throws {
    guard row.isSaved else { return }
    let bench = try await bench(row)
    bench.clock.advance(by: .seconds(row.fresh))
    _ = await load(bench)
    try await bench.client.waitForRequests(2)
    let fields = bench.client.requests[1].headerFields
    let names: [HTTPField.Name] = [.ifNoneMatch, .ifModifiedSince]
    let sent = names.compactMap { name in fields[name].map { "\(name.rawName): \($0)" } }
    #expect(sent == (row.condition.isEmpty ? [] : [row.condition]))
    let first = bench.client.requests[0].headerFields
    #expect(names.allSatisfy { first[$0] == nil })
  }

  private func load(_ bench: SharedBench) async -> Loaded<[String]>? {
    do {
      return try await bench.load()
    } catch {
      #expect((error as? FeedError)?.reason == .invalidData)
      return nil
    }
  }
}
