// How wide a text is on a terminal, and how it is made to fit.

extension Character {
  /// The number of cells that a terminal uses for the character.
  ///
  /// Characters of East Asian scripts and emoji take two, by the ranges of Unicode's
  /// `EastAsianWidth.txt` that are wide.
  var displayWidth: Int {
    guard let first = unicodeScalars.first else { return 0 }
    if first.isASCII { return 1 }
    let properties = first.properties
    if properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return Self.isWide(first.value) ? 2 : 1
    }
  }

  private static func isWide(_ number: UInt32) -> Bool {
    switch number {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
      0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF,
      0x1AFF0...0x1B2FF, 0x20000...0x3FFFD:
      true
    default: false
    }
  }
}

extension String {
  /// The number of cells that a terminal uses for the text, which has no escape sequences.
  var displayWidth: Int {
    utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.displayWidth }
  }

  /// The text with `...` in place of its middle, if it is wider than `width` cells.
  func shortened(to width: Int) -> String {
    guard displayWidth > width else { return self }
    let kept = max(width - 3, 0)
    return start(ofWidth: kept - kept / 2) + "..."
      + String(String(reversed()).start(ofWidth: kept / 2).reversed())
  }

  private func start(ofWidth width: Int) -> String {
    var left = width
    return String(
      prefix { character in
        left -= character.displayWidth
        return left >= 0
      })
  }

  /// The text in lines of at most `width` cells, broken at spaces; a longer word has its own line.
  func folded(to width: Int) -> [String] {
    guard displayWidth > width else { return [self] }
    var lines: [String] = []
    var line = ""
    for word in split(separator: " ", omittingEmptySubsequences: false) {
      if lines.isEmpty, line.isEmpty {
        line = String(word)
      } else if line.displayWidth + 1 + String(word).displayWidth <= width {
        line += " " + word
      } else {
        lines.append(line)
        line = String(word)
      }
    }
    return lines + [line]
  }
}

extension TextOutputStream {
  /// Writes a label and a text, whose further lines begin below the start of the first one.
  ///
  /// - Parameters:
  ///   - text: One line of text.
  ///   - label: What is before it, in the colour of `labelTint`.
  ///   - labelTint: The colour of the label; nil for none.
  ///   - width: The width of the terminal; nil for one line of any length.
  mutating func writeFolded(
    _ text: String, after label: String, _ labelTint: Tint? = nil, width: Int?
  ) {
    let indent = label.displayWidth
    let lines = width.map { text.folded(to: max($0 - indent, 20)) } ?? [text]
    for (number, line) in lines.enumerated() {
      let start =
        number == 0 ? labelTint?.paint(label) ?? label : String(repeating: " ", count: indent)
      write(start + line + "\n")
    }
  }
}
