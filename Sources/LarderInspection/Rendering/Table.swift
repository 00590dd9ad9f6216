import Larder

/// Writes rows of texts in aligned columns, which fit the width of a terminal.
///
/// Columns are aligned within a window of rows and never become narrower, so that a table of any
/// length can be streamed. If lines would be wider than the terminal, the widest columns become
/// narrower: keys and the like are shortened in the middle, other texts folded between words. If
/// that is not enough, each row is written as a group of lines, one for each column.
struct Table {
  /// A column's title, and how its texts are aligned and made to fit.
  struct Column: ExpressibleByStringLiteral {
    let title: String
    private(set) var isRight = false
    private(set) var isShortened = false
    private(set) var isTinted = true

    /// A column of texts that are folded between words, aligned on the left.
    init(stringLiteral title: String) { self.title = title }

    /// A column of numbers, aligned on the right, which stay as they are.
    static func number(_ title: String) -> Column {
      var column = Column(stringLiteral: title)
      column.isRight = true
      return column
    }

    /// A column with the numbers of the rows; a row's colour is for the text behind it.
    static var rowNumber: Column {
      var column = number("#")
      column.isTinted = false
      return column
    }

    /// A column of names or keys, which are shortened in the middle.
    static func name(_ title: String) -> Column {
      var column = Column(stringLiteral: title)
      column.isShortened = true
      return column
    }
  }

  private static let window = 200
  private static let gap = "  "
  /// A column of names is not narrower than this, unless all of its texts are.
  private static let leastWidth = 8

  private let columns: [Column]
  private let style: Style
  /// The widths of the widest texts so far.
  private var widths: [Int]
  /// The widths of the longest words so far, which are not cut.
  private var wordWidths: [Int]
  private var rows: [(cells: [String], tint: Tint?)] = []
  /// Whether the table has lines with several columns; nil before the first line.
  private var hasColumns: Bool?

  init(_ columns: [Column], style: Style) {
    self.columns = columns
    self.style = style
    widths = columns.map(\.title.displayWidth)
    wordWidths = widths
  }

  /// The column whose texts have the colours of their rows.
  private var tinted: Int? { columns.firstIndex(where: \.isTinted) }

  /// Adds a row; with a tint, its first text has that colour on a terminal.
  mutating func add(
    _ row: [String], tint: Tint? = nil, to output: inout some TextOutputStream
  ) {
    rows.append((row.map(\.escapedForTerminal), style.isColored ? tint : nil))
    if rows.count >= Self.window { flush(to: &output) }
  }

  /// Writes the buffered rows.
  mutating func flush(to output: inout some TextOutputStream) {
    for row in rows {
      for (index, cell) in row.cells.enumerated() {
        widths[index] = max(widths[index], cell.displayWidth)
        guard style.width != nil, !columns[index].isRight, !columns[index].isShortened else {
          continue
        }
        for word in cell.split(separator: " ") {
          wordWidths[index] = max(wordWidths[index], String(word).displayWidth)
        }
      }
    }
    let (widths, fits) = fittedWidths
    let isFirst = hasColumns == nil
    let hasColumns = hasColumns ?? fits
    self.hasColumns = hasColumns
    if isFirst, hasColumns { write(columns.map(\.title), nil, widths, to: &output) }
    for (index, row) in rows.enumerated() {
      if hasColumns {
        write(row.cells, row.tint, widths, to: &output)
      } else {
        if !isFirst || index > 0 { output.write("\n") }
        writeGroup(row.cells, row.tint, to: &output)
      }
    }
    rows = []
  }

  /// The widths of the columns in lines that fit the terminal, and whether they do fit it.
  private var fittedWidths: ([Int], fits: Bool) {
    var fitted = widths
    guard let width = style.width else { return (fitted, true) }
    let room = width - Self.gap.count * (columns.count - 1)
    var excess = fitted.reduce(0, +) - room
    while excess > 0 {
      let narrower = columns.indices.filter { fitted[$0] > leastWidth(of: $0) }
      guard let widest = narrower.max(by: { fitted[$0] < fitted[$1] }) else {
        return (fitted, false)
      }
      fitted[widest] -= 1
      excess -= 1
    }
    return (fitted, true)
  }

  private func leastWidth(of index: Int) -> Int {
    let column = columns[index]
    if column.isRight { return widths[index] }
    guard column.isShortened else { return wordWidths[index] }
    return min(widths[index], max(Self.leastWidth, column.title.displayWidth))
  }

  /// Writes a row as one line, or as several if texts are folded.
  private func write(
    _ cells: [String], _ tint: Tint?, _ widths: [Int], to output: inout some TextOutputStream
  ) {
    let tinted = tinted
    let texts = cells.indices.map { index in
      columns[index].isShortened
        ? [cells[index].shortened(to: widths[index])] : cells[index].folded(to: widths[index])
    }
    for number in 0..<(texts.map(\.count).max() ?? 0) {
      var line = ""
      for (index, lines) in texts.enumerated() {
        let text = number < lines.count ? lines[number] : ""
        let padding = String(repeating: " ", count: max(0, widths[index] - text.displayWidth))
        let painted = index == tinted ? tint?.paint(text) ?? text : text
        line += columns[index].isRight ? padding + painted : painted + padding
        line += Self.gap
      }
      // The last column needs no padding, and a title or a text at the end may be empty.
      while line.last == " " { line.removeLast() }
      output.write(line + "\n")
    }
  }

  /// Writes a row as a group of lines: for each column its title and the text.
  private func writeGroup(
    _ cells: [String], _ tint: Tint?, to output: inout some TextOutputStream
  ) {
    let titleWidth = columns.map(\.title.displayWidth).max() ?? 0
    for (index, cell) in cells.enumerated() where !columns[index].title.isEmpty {
      let title = columns[index].title
      let padding = String(repeating: " ", count: titleWidth - title.displayWidth)
      let label = title + padding + Self.gap
      output.writeFolded(cell, after: label, index == tinted ? tint : nil, width: style.width)
    }
  }
}

/// A colour with a meaning.
enum Tint: String {
  case good = "32"
  case aging = "33"
  case bad = "31"
  case gone = "2"

  func paint(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}

extension RecordState {
  var tint: Tint {
    switch self {
    case .fresh: .good
    case .stale: .aging
    case .expired: .gone
    case .damaged, .unsupported: .bad
    }
  }
}
