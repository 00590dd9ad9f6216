import Larder

/// Writes rows of texts in aligned columns.
///
/// Columns are aligned within a window of rows and never become narrower, so that a table of any
/// length can be streamed. The last column is not padded and should hold the longest texts, such as
/// keys: if a line would be wider than the terminal, its last text is shortened in the middle.
struct Table {
  /// A column's title, and how its texts are aligned.
  struct Column: ExpressibleByStringLiteral {
    let title: String
    private(set) var isRight = false
    private(set) var isWhole = false

    /// A column of texts, aligned on the left.
    init(stringLiteral title: String) { self.title = title }

    /// A column of numbers, aligned on the right.
    static func number(_ title: String) -> Column {
      var column = Column(stringLiteral: title)
      column.isRight = true
      return column
    }

    /// A column of texts that are not shortened, however narrow the terminal is.
    static func whole(_ title: String) -> Column {
      var column = Column(stringLiteral: title)
      column.isWhole = true
      return column
    }
  }

  private static let window = 200
  private static let gap = "  "
  /// The last column is not shortened below this.
  private static let leastWidth = 12

  private let columns: [Column]
  private let style: Style
  private var widths: [Int]
  private var rows: [(cells: [String], tint: Tint?)]

  init(_ columns: [Column], style: Style) {
    self.columns = columns
    self.style = style
    widths = columns.map(\.title.count)
    rows = [(columns.map(\.title), nil)]
  }

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
      for (index, cell) in row.cells.enumerated() { widths[index] = max(widths[index], cell.count) }
    }
    let before = widths.dropLast().reduce(0) { $0 + $1 + Self.gap.count }
    let room = style.width.map { max($0 - before, Self.leastWidth) } ?? .max
    for row in rows {
      var line = ""
      for (index, cell) in row.cells.enumerated() {
        let text = index == 0 ? row.tint?.paint(cell) ?? cell : cell
        let isLast = index == row.cells.count - 1
        let padding = String(repeating: " ", count: widths[index] - cell.count)
        if columns[index].isRight {
          line += padding + text + (isLast ? "" : Self.gap)
        } else if isLast {
          let isShortened = cell.count > room && !columns[index].isWhole
          line += isShortened ? cell.shortened(to: room) : text
        } else {
          line += text + padding + Self.gap
        }
      }
      // A title or a text at the end may be empty.
      while line.last == " " { line.removeLast() }
      output.write(line + "\n")
    }
    rows = []
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

extension String {
  /// The text with `...` in place of its middle, `count` characters long.
  func shortened(to count: Int) -> String {
    let kept = max(count - 3, 0)
    return prefix(kept - kept / 2) + "..." + suffix(kept / 2)
  }
}
