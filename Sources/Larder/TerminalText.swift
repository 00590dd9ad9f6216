extension Unicode.Scalar {
  /// Whether a terminal shows the character and is not controlled by it.
  ///
  /// False for control characters, line and paragraph separators, format characters such as those
  /// that reverse the direction of a text, and characters that are private or unassigned. The two
  /// zero-width joiners are safe: emoji, and Persian and Indian texts, need them.
  package var isSafeOnTerminal: Bool {
    switch properties.generalCategory {
    case .format: self == "\u{200C}" || self == "\u{200D}"
    case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  /// The character as JSON escapes it: `\u` and four hexadecimal digits for each UTF-16 unit.
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
  /// The text as one line that a terminal shows and is not controlled by.
  ///
  /// Characters that are not safe on a terminal are escaped, line breaks too. A backslash stays as
  /// it is, so the result is for reading and not for parsing.
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
