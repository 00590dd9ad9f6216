import HTTPTypes

/// The directives of a `Cache-Control` header field, of a request or of a response.
///
/// RFC 9111, section 5.2; RFC 5861. Numbers are seconds.
package struct CacheControl: Sendable, Equatable {
  /// 0 if the number is invalid, as section 4.2.1 encourages.
  package var maxAge: Int?
  package var noStore = false
  package var noCache = false
  package var mustRevalidate = false
  package var mustUnderstand = false
  package var staleWhileRevalidate: Int?
  package var staleIfError: Int?

  // For shared caches.
  package var sharedMaxAge: Int?
  package var isPublic = false
  package var isPrivate = false
  package var proxyRevalidate = false

  // Of requests.
  package var minFresh: Int?
  /// The largest number without an argument: any age.
  package var maxStale: Int?
  package var onlyIfCached = false

  package init() {}

  /// Parses the value of a header field; directives that are unknown, or not readable, are skipped.
  package init(_ text: String) {
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
      case "s-maxage": sharedMaxAge = deltaSeconds(argument) ?? 0
      case "public": isPublic = true
      // With field names it concerns these fields only; not to share the response is safer.
      case "private": isPrivate = true
      case "proxy-revalidate": proxyRevalidate = true
      case "min-fresh": minFresh = deltaSeconds(argument)
      case "max-stale": maxStale = argument == nil ? limitedSeconds(.max) : deltaSeconds(argument)
      case "only-if-cached": onlyIfCached = true
      case "stale-while-revalidate": staleWhileRevalidate = deltaSeconds(argument)
      case "stale-if-error": staleIfError = deltaSeconds(argument)
      default: break
      }
    }
  }

  /// The directives, with lowercase names, and their arguments without quotation marks.
  package static func directives(in text: String) -> [(name: String, argument: String?)] {
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
package func deltaSeconds(_ text: String?) -> Int? {
  guard let text, !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
    return nil
  }
  return limitedSeconds(Int(text) ?? .max)
}

/// A number of seconds within 2^31 in each direction, so that sums of some do not overflow.
package func limitedSeconds(_ seconds: Int) -> Int { min(max(seconds, -1 << 31), 1 << 31) }

extension StringProtocol {
  /// The text without spaces and tabs at its ends.
  package var trimmed: String {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
  }
}
