import Foundation
import HTTPTypes
import Larder
import LarderHTTP

/// Whether, how long, and with which validator a private cache keeps a response (RFC 9111).
///
/// Two things differ from the RFC. A response without a `max-age` and a valid `Expires` is fresh
/// for the cache's lifetime, which begins when it is saved, in place of a heuristic. And the age of
/// a response when it arrives is the number in its `Age` field.
struct StoringRule: Equatable {
  /// Whether the response may be saved.
  var isStorable = true
  /// What is saved of the response's header fields.
  var mark = StoredMark()

  /// - Parameters:
  ///   - exchange: A request, and the response to it.
  ///   - now: The date, for a response with `Expires` and without `Date`.
  init(_ exchange: Exchanged, now: Date) {
    let fields = exchange.response.headerFields
    let control = CacheControl(fields[.cacheControl] ?? "")
    mark = StoredMark(
      validator: fields[.eTag] ?? fields[.lastModified].flatMap { httpDate($0) == nil ? nil : $0 },
      maxAge: Self.maxAge(of: fields, control, now: now),
      age: fields.ageOnArrival,
      mustRevalidate: control.mustRevalidate || control.noCache,
      staleWhileRevalidate: control.staleWhileRevalidate, staleIfError: control.staleIfError)
    // A cache that understands the status ignores `no-store` beside `must-understand`.
    let isForbidden =
      control.noStore && !(control.mustUnderstand && exchange.response.status == .ok)
    isStorable =
      exchange.request.method == .get && !isForbidden && Self.isUniform(fields[.vary] ?? "")
  }

  /// The rule for a value of several responses: the strictest of each, and no validator.
  init(_ exchanges: [Exchanged], now: Date) {
    let rules = exchanges.map { StoringRule($0, now: now) }
    guard var rule = rules.first else { preconditionFailure("a value without a response") }
    for other in rules.dropFirst() {
      rule.isStorable = rule.isStorable && other.isStorable
      rule.mark.combine(other.mark)
    }
    if rules.count > 1 { rule.mark.validator = nil }
    self = rule
  }

  /// Seconds from when the server made a response to the end of its freshness, see ``StoredMark``.
  private static func maxAge(of fields: HTTPFields, _ control: CacheControl, now: Date) -> Int? {
    if control.noCache { return 0 }
    return control.maxAge ?? fields.secondsToExpiry(now: now)
  }

  /// Whether the response is the same for all requests that this client sends for the URL.
  private static func isUniform(_ vary: String) -> Bool {
    vary.split(separator: ",").map { $0.trimmed.lowercased() }
      .allSatisfy { $0.isEmpty || $0 == "accept-encoding" }
  }
}
