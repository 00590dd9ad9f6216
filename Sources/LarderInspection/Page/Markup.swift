import Larder

/// A piece of HTML.
///
/// What a literal says is markup. Texts that are interpolated are escaped, whatever they contain:
///
/// ```swift
/// let cell: Markup = "<td>\(key)</td>"
/// ```
struct Markup: ExpressibleByStringInterpolation, Equatable {
  private(set) var text: String

  init(stringLiteral text: String) { self.text = text }

  init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  /// Text that is markup already.
  init(markup text: String) { self.text = text }

  static func + (first: Markup, second: Markup) -> Markup { "\(first)\(second)" }

  static func += (first: inout Markup, second: Markup) { first.text += second.text }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    mutating func appendLiteral(_ literal: String) { text += literal }

    /// Appends a text in one line: controls and marks that reorder it are shown as escapes.
    mutating func appendInterpolation(_ value: String) {
      text += Markup.escaped(value.escapedForTerminal)
    }

    /// Appends a text whose line breaks and tabs are kept.
    mutating func appendInterpolation(lines value: String) {
      let lines = value.split(separator: "\n", omittingEmptySubsequences: false).map { line in
        line.split(separator: "\t", omittingEmptySubsequences: false)
          .map { Markup.escaped(String($0).escapedForTerminal) }.joined(separator: "\t")
      }
      text += lines.joined(separator: "\n")
    }

    mutating func appendInterpolation(_ value: Int) { text += "\(value)" }

    mutating func appendInterpolation(_ value: Double) { text += "\(value)" }

    mutating func appendInterpolation(_ value: Markup) { text += value.text }

    mutating func appendInterpolation(_ values: [Markup]) {
      for value in values { text += value.text }
    }
  }

  /// A text with the characters replaced that mean something in HTML, in texts and in attributes.
  private static func escaped(_ text: String) -> String {
    var result = ""
    result.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension TextOutputStream {
  mutating func write(_ markup: Markup) { write(markup.text) }
}
