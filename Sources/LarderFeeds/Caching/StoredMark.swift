import HTTPTypes
import Larder

/// What is saved of a response's header fields besides its lifetime, as the entry's validator.
///
/// The first line of the validator is the response's `ETag` or else `Last-Modified`, as the server
/// sent it, and may be empty. If the response says anything of its use when it is stale, a second
/// line has these directives as in `Cache-Control`.
struct StoredMark: Equatable {
  var validator: String?
  var mustRevalidate = false
  /// Seconds.
  var staleWhileRevalidate: Int?
  /// Seconds.
  var staleIfError: Int?
}

extension StoredMark {
  /// The mark of a saved entry.
  init(_ saved: Validator?) {
    let lines = (saved?.text ?? "").split(
      separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    if let line = lines.first, !line.isEmpty { validator = String(line) }
    guard lines.count == 2 else { return }
    let control = CacheControl(String(lines[1]))
    mustRevalidate = control.mustRevalidate
    staleWhileRevalidate = control.staleWhileRevalidate
    staleIfError = control.staleIfError
  }

  /// The validator to save; nil if there is nothing to say, or if it is too long to be saved.
  var saved: Validator? {
    var directives: [String] = []
    if mustRevalidate { directives.append("must-revalidate") }
    if let staleWhileRevalidate {
      directives.append("stale-while-revalidate=\(staleWhileRevalidate)")
    }
    if let staleIfError { directives.append("stale-if-error=\(staleIfError)") }
    // A field has no line break, which a client of the program's own might not know.
    let isSavable = { (text: String) in text.utf8.count <= 3072 && !text.contains("\n") }
    var text = validator.flatMap { isSavable($0) ? $0 : nil } ?? ""
    if !directives.isEmpty { text += "\n" + directives.joined(separator: ", ") }
    return text.isEmpty ? nil : Validator(text)
  }

  /// The header fields that ask the server whether the entry is still right; empty if it cannot.
  var condition: HTTPFields {
    guard let validator else { return [:] }
    // Some servers send tags without quotation marks.
    return [httpDate(validator) == nil ? .ifNoneMatch : .ifModifiedSince: validator]
  }

  /// The stricter of two marks; the validator stays.
  mutating func combine(_ other: StoredMark) {
    func smaller(_ one: Int?, _ two: Int?) -> Int? {
      if let one, let two { return min(one, two) }
      return nil
    }
    mustRevalidate = mustRevalidate || other.mustRevalidate
    staleWhileRevalidate = smaller(staleWhileRevalidate, other.staleWhileRevalidate)
    staleIfError = smaller(staleIfError, other.staleIfError)
  }

  /// The mark after a response with status 304 (RFC 9111, section 4.3.4).
  func updated(by response: HTTPResponse, _ rule: StoringRule) -> StoredMark {
    var mark = response.headerFields[.cacheControl] == nil ? self : rule.mark
    mark.validator = rule.mark.validator ?? validator
    return mark
  }
}
