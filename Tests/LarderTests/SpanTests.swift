import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Spans between dates, and in seconds.
@Suite struct SpanTests {
  @Test("The span between two dates is exact, with its sign.")
  func spans() {
    let date = Date(timeIntervalSinceReferenceDate: 0)
    for (seconds, span) in [
      (0, .zero), (604_799, .seconds(604_799)), (-1, .seconds(-1)), (0.5, .milliseconds(500)),
      (-1.25, .milliseconds(-1250)), (9_007_199_254_740_991, .seconds(9_007_199_254_740_991)),
    ] as [(Double, Duration)] {
      #expect(Duration(from: date, to: date + seconds) == span, "\(seconds)")
      #expect(span.inSeconds == seconds)
    }
    #expect(Duration.seconds(604_799).inSeconds == 604_799)
  }

  @Test("The span to a date that is far away, or is not a number, is the longest one.")
  func limits() {
    let date = Date(timeIntervalSinceReferenceDate: 0)
    let (longest, shortest) = (Duration.seconds(Int64.max), Duration.seconds(Int64.min))
    for (end, span) in [
      (.nan, longest), (.infinity, longest), (1e300, longest), (0x1p63, longest),
      (-.infinity, shortest), (-1e300, shortest), (-0x1p63, shortest),
    ] as [(Double, Duration)] {
      #expect(Duration(from: date, to: Date(timeIntervalSinceReferenceDate: end)) == span, "\(end)")
    }
  }

  @Test("A lifetime of spans is checked.")
  func lifetimes() throws {
    #expect(try Lifetime(.seconds(90)) == .seconds(90))
    #expect(
      try Lifetime(.milliseconds(500), thenStaleFor: .seconds(60))
        == .fresh(for: .seconds(0.5), thenStaleFor: .minutes(1)))
    for (fresh, stale) in [(-1, 0), (0, -1)] {
      #expect {
        try Lifetime(.seconds(fresh), thenStaleFor: .seconds(stale))
      } throws: { error in
        if case StoreError.invalidArgument = error { true } else { false }
      }
    }
  }

  @Test("Ages of entries with dates of any kind do not trap.")
  func ages() throws {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let cache = try Store.inMemory(options: options).cache(
      "notes", of: Int.self, lifetime: .unlimited)
    for seconds in [.nan, .infinity, -.infinity, 1e300, -1e300, 0x1p63] as [Double] {
      clock.set(Date(timeIntervalSinceReferenceDate: seconds))
      try cache.save(1, for: "a")
      clock.set(Date(timeIntervalSinceReferenceDate: 0))
      switch try cache.lookup(for: "a", maxAge: .seconds(1)) {
      case .fresh(let entry), .stale(let entry): #expect(abs(entry.age.inSeconds) > 9e18)
      case .expired(let metadata): #expect(abs(metadata.age.inSeconds) > 9e18)
      case .missing: Issue.record("it is missing")
      }
    }
  }
}
