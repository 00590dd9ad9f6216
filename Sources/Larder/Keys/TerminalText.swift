extension Unicode.Scalar {
  /// Whether a terminal prints the character, instead of interpreting it.
  ///
  /// False for control characters, line and paragraph separators, format characters such as those
  /// that reverse the text direction, and private or unassigned characters. The zero-width joiner
  /// and non-joiner are safe: emoji and the Persian and Indic scripts need them.
  package var isSafeOnTerminal: Bool {
    // Looking up a category takes most of a scan's time.
    if isASCII { return value >= 0x20 && value != 0x7F }
    switch properties.generalCategory {
    case .format: return self == "\u{200C}" || self == "\u{200D}"
    case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator:
      return false
    default: return true
    }
  }

  /// The character escaped as in JSON: `\u` and four hexadecimal digits for each UTF-16 unit.
  package var escaped: String {
    UTF16.encode(self).map { units in
      units.map { unit in
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }.joined()
    } ?? ""
  }
}

extension String {
  /// The text as a single line that is safe to print on a terminal.
  ///
  /// Unsafe characters are escaped, including line breaks. Backslashes are not, so the result is
  /// for people and cannot be parsed.
  package var escapedForTerminal: String {
    if utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return self }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.isSafeOnTerminal {
        text.unicodeScalars.append(scalar)
      } else {
        text += scalar.escaped
      }
    }
    return text
  }
}
