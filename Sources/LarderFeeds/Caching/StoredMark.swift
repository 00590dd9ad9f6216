import Foundation
import HTTPTypes
import Larder
import LarderHTTP

/// What is saved of a response's header fields, as the entry's validator.
///
/// The first line of the validator is the response's `ETag` or else `Last-Modified`, as the server
/// sent it, and may be empty. A second line has directives as in `Cache-Control`: what the response
/// says of its use when it is stale, and the `max-age` and `age` that a window of stale use, or a
/// later response with status 304, needs. The `max-age` is negative if `Expires` is before `Date`.
struct StoredMark: Equatable {
  var validator: String?
  /// Seconds from when the server made the response to the end of its freshness; nil for the
  /// cache's lifetime, which begins when the response is saved.
  var maxAge: Int?
  /// Seconds between when the server made the response and its arrival.
  var age = 0
  var mustRevalidate = false
  /// Seconds from the end of freshness.
  var staleWhileRevalidate: Int?
  /// Seconds from the end of freshness.
  var staleIfError: Int?
}

extension StoredMark {
  /// The mark of a saved entry.
  init(_ saved: Validator?) {
    let lines = (saved?.text ?? "").split(
      separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    if let line = lines.first, !line.isEmpty { validator = String(line) }
    guard lines.count == 2 else { return }
    for (name, argument) in CacheControl.directives(in: String(lines[1])) {
      switch name {
      case "max-age": maxAge = argument.flatMap { Int($0) }.map(limitedSeconds)
      case "age": age = deltaSeconds(argument) ?? 0
      case "must-revalidate": mustRevalidate = true
      case "stale-while-revalidate": staleWhileRevalidate = deltaSeconds(argument)
      case "stale-if-error": staleIfError = deltaSeconds(argument)
      default: break
      }
    }
  }

  /// The validator to save; nil if there is nothing to say, or if it is too long to be saved.
  var saved: Validator? {
    // A field has no line break, which a client of the program's own might not know.
    let isSavable = { (text: String) in text.utf8.count <= 3072 && !text.contains("\n") }
    var text = validator.flatMap { isSavable($0) ? $0 : nil } ?? ""
    var directives: [String] = []
    if let maxAge, !text.isEmpty || secondsStaleOnArrival > 0 {
      directives.append("max-age=\(maxAge)")
      if age > 0 { directives.append("age=\(age)") }
    }
    if mustRevalidate { directives.append("must-revalidate") }
    if let staleWhileRevalidate {
      directives.append("stale-while-revalidate=\(staleWhileRevalidate)")
    }
    if let staleIfError { directives.append("stale-if-error=\(staleIfError)") }
    if !directives.isEmpty { text += "\n" + directives.joined(separator: ", ") }
    return text.isEmpty ? nil : Validator(text)
  }

  /// The header fields that ask the server whether the entry is still right; empty if it cannot.
  var condition: HTTPFields {
    guard let validator else { return [:] }
    // Some servers send tags without quotation marks.
    return [httpDate(validator) == nil ? .ifNoneMatch : .ifModifiedSince: validator]
  }

  /// The strictest mark of a value of several responses: the earliest end of freshness, and the
  /// shortest windows; the validator stays.
  mutating func combine(_ other: StoredMark) {
    func smaller(_ one: Int?, _ two: Int?) -> Int? {
      if let one, let two { return min(one, two) }
      return nil
    }
    let ends = [self, other].compactMap { mark in mark.maxAge.map { $0 - mark.age } }
    (maxAge, age) = (ends.min(), 0)
    mustRevalidate = mustRevalidate || other.mustRevalidate
    staleWhileRevalidate = smaller(staleWhileRevalidate, other.staleWhileRevalidate)
    staleIfError = smaller(staleIfError, other.staleIfError)
  }

  /// The mark after a response with status 304, which has the mark `other` (RFC 9111, section
  /// 4.3.4).
  ///
  /// Fields that the response does not have stay. Its age is its own in any case.
  func updated(by other: StoredMark, hasCacheControl: Bool) -> StoredMark {
    var mark = hasCacheControl ? other : self
    mark.validator = other.validator ?? validator
    mark.maxAge = other.maxAge ?? maxAge
    mark.age = other.age
    return mark
  }
}

// MARK: - Lifetimes

extension StoredMark {
  /// For how many seconds the response was stale when it arrived; 0 if it was fresh.
  private var secondsStaleOnArrival: Int { maxAge.map { max(0, age - $0) } ?? 0 }

  /// The lifetime of an entry that is saved when the response arrives; nil for the cache's.
  ///
  /// The entry is stale at least for the cache's stale time, until the cache would delete it, and
  /// as long as the response may be used when it is stale: until then a server can confirm it.
  func lifetime(in cache: Lifetime) -> Lifetime? {
    let windows = [staleWhileRevalidate, staleIfError].map { ($0 ?? 0) - secondsStaleOnArrival }
    let longest = Double(windows.reduce(0, max))
    let (freshSeconds, staleSeconds) = (cache.freshSeconds, cache.staleSeconds)
    guard let maxAge else {
      guard freshSeconds != nil, let staleSeconds, longest > staleSeconds else { return nil }
      return .fresh(for: cache.fresh, thenStaleFor: .seconds(longest))
    }
    let fresh = Double(max(0, maxAge - age))
    guard let freshSeconds, let staleSeconds else {
      return .fresh(for: .seconds(fresh), thenStaleFor: .unlimited)
    }
    let stale = [staleSeconds, freshSeconds + staleSeconds - fresh].reduce(longest, max)
    return .fresh(for: .seconds(fresh), thenStaleFor: .seconds(stale))
  }

  /// The date at which a window that begins at the end of freshness ends.
  ///
  /// - Parameters:
  ///   - seconds: The length of the window.
  ///   - freshEnd: The end of the fresh time of the entry. It is the end of freshness, unless that
  ///     was before the response arrived.
  /// - Returns: The date.
  func end(ofWindow seconds: Int, from freshEnd: Date) -> Date {
    freshEnd.addingTimeInterval(Double(seconds - secondsStaleOnArrival))
  }
}
