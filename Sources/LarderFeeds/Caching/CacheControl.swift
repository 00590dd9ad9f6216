import HTTPTypes

/// The directives of a response's `Cache-Control` header that matter to a private cache (RFC 9111,
/// section 5.2.2; RFC 5861).
///
/// `s-maxage`, `proxy-revalidate` and `public` are for shared caches.
struct CacheControl: Sendable, Equatable {
  /// Seconds; 0 if the number is invalid, as section 4.2.1 encourages.
  var maxAge: Int?
  var noStore = false
  var noCache = false
  var mustRevalidate = false
  var mustUnderstand = false
  /// Seconds.
  var staleWhileRevalidate: Int?
  /// Seconds.
  var staleIfError: Int?

  init() {}

  /// Parses the value of a header field; directives that are unknown, or not readable, are skipped.
  init(_ text: String) {
    var seen: Set<String> = []
    for (name, argument) in Self.directives(in: text) where seen.insert(name).inserted {
      // Of a directive that comes twice, the first one counts.
      switch name {
      case "max-age": maxAge = deltaSeconds(argument) ?? 0
      case "no-store": noStore = true
      // With field names it forbids to reuse these fields only; the whole response is safer.
      case "no-cache": noCache = true
      case "must-revalidate": mustRevalidate = true
      case "must-understand": mustUnderstand = true
      case "stale-while-revalidate": staleWhileRevalidate = deltaSeconds(argument)
      case "stale-if-error": staleIfError = deltaSeconds(argument)
      default: break
      }
    }
  }

  /// The directives, with lowercase names, and their arguments without quotation marks.
  static func directives(in text: String) -> [(name: String, argument: String?)] {
    split(text).map { part in
      let pieces = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { $0.trimmed }
      let argument = pieces.count == 2 ? unquoted(pieces[1]) : nil
      return (pieces[0].lowercased(), argument)
    }
  }

  /// The parts of a list between commas that are not inside quotation marks.
  private static func split(_ text: String) -> [Substring] {
    var (parts, start, isQuoted, isEscaped): ([Substring], String.Index, Bool, Bool) =
      ([], text.startIndex, false, false)
    for index in text.indices {
      switch text[index] {
      case _ where isEscaped: isEscaped = false
      case "\\" where isQuoted: isEscaped = true
      case "\"": isQuoted.toggle()
      case "," where !isQuoted:
        parts.append(text[start..<index])
        start = text.index(after: index)
      default: break
      }
    }
    return parts + [text[start...]]
  }

  private static func unquoted(_ text: String) -> String {
    guard text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return text }
    return String(text.dropFirst().dropLast().replacing("\\", with: ""))
  }
}

/// A number of seconds in a header field (RFC 9111, section 1.2.2): digits only, and at most 2^31.
///
/// Nil if the text is missing or anything else.
func deltaSeconds(_ text: String?) -> Int? {
  guard let text, !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
    return nil
  }
  return limitedSeconds(Int(text) ?? .max)
}

/// A number of seconds within 2^31 in each direction, so that sums of some do not overflow.
func limitedSeconds(_ seconds: Int) -> Int { min(max(seconds, -1 << 31), 1 << 31) }

extension StringProtocol {
  /// The text without spaces and tabs at its ends.
  var trimmed: String {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
  }
}
