package import Foundation
package import HTTPTypes

extension HTTPFields {
  /// The seconds between when the server made the response and its arrival, by `Age`; 0 without it.
  ///
  /// Clocks of servers are not trusted to find an older age.
  package var ageOnArrival: Int {
    deltaSeconds(self[.age]?.split(separator: ",").first?.trimmed) ?? 0
  }

  /// The seconds from `Date`, or `now` without one, to `Expires`; nil without `Expires`.
  package func secondsToExpiry(now: Date) -> Int? {
    guard let expires = self[.expires] else { return nil }
    // An invalid date, such as 0, is in the past (RFC 9111, section 5.3).
    guard let end = httpDate(expires, now: now) else { return 0 }
    let date = self[.date].flatMap { httpDate($0, now: now) } ?? now
    let seconds = end.timeIntervalSince(date).rounded(.down)
    return limitedSeconds(Int(exactly: seconds) ?? (seconds > 0 ? .max : .min))
  }
}

extension HTTPResponse.Status {
  /// Whether it is of a server or gateway in trouble, for which RFC 5861 allows a stale response.
  package var isServerError: Bool { [500, 502, 503, 504].contains(code) }
}
