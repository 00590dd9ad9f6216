/// A pattern that matches whole texts.
///
/// `*` matches any characters, `?` one character, `[a-z]` one of a set and `[!a-z]` one that is not
/// in the set. A backslash escapes the next character. Case matters.
struct Glob: Sendable {
  private enum Part {
    case any
    case one
    case scalar(Unicode.Scalar)
    case set([ClosedRange<Unicode.Scalar>], isNegated: Bool)

    func matches(_ scalar: Unicode.Scalar) -> Bool {
      switch self {
      case .any: false
      case .one: true
      case .scalar(let wanted): scalar == wanted
      case .set(let ranges, let isNegated):
        ranges.contains { $0.contains(scalar) } != isNegated
      }
    }
  }

  private var parts: [Part] = []

  /// Reads a pattern.
  ///
  /// Throws a usage error if a set is not closed.
  init(_ pattern: String) throws(InspectionError) {
    var rest = Array(pattern.unicodeScalars)[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "*": parts.append(.any)
      case "?": parts.append(.one)
      case "\\": parts.append(.scalar(rest.popFirst() ?? scalar))
      case "[": parts.append(try Self.set(from: &rest, in: pattern))
      default: parts.append(.scalar(scalar))
      }
    }
  }

  private static func set(
    from rest: inout ArraySlice<Unicode.Scalar>, in pattern: String
  ) throws(InspectionError) -> Part {
    let isNegated = rest.first == "!"
    if isNegated { rest.removeFirst() }
    var ranges: [ClosedRange<Unicode.Scalar>] = []
    while let scalar = rest.popFirst() {
      if scalar == "]", !ranges.isEmpty { return .set(ranges, isNegated: isNegated) }
      var last = scalar
      if rest.first == "-", let end = rest.dropFirst().first, end != "]" {
        last = end
        rest.removeFirst(2)
      }
      ranges.append(min(scalar, last)...max(scalar, last))
    }
    throw InspectionError(.usage, "the pattern \(pattern) has [ without ]")
  }

  /// Whether the pattern matches the text.
  ///
  /// - Complexity: At most the product of both lengths.
  func matches(_ text: String) -> Bool {
    let text = Array(text.unicodeScalars)
    var (at, part) = (0, 0)
    // The last star and the end of its match; it takes one more character if the rest fails.
    var retry: (part: Int, at: Int)?
    while at < text.count {
      if part < parts.count, case .any = parts[part] {
        part += 1
        retry = (part, at)
      } else if part < parts.count, parts[part].matches(text[at]) {
        part += 1
        at += 1
      } else if let (next, reached) = retry {
        retry = (next, reached + 1)
        (part, at) = (next, reached + 1)
      } else {
        return false
      }
    }
    return parts[part...].allSatisfy { if case .any = $0 { true } else { false } }
  }
}
