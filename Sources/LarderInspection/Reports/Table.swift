import Larder

/// Rows of texts in columns, for people.
///
/// Columns are aligned within a window of rows and never become narrower, so that a table of any
/// length is written as it comes. The last column is not padded: long things belong there.
struct Table {
  private static let window = 200

  private var widths: [Int]
  private var rows: [[String]] = []

  init(_ titles: [String]) {
    widths = titles.map(\.count)
    rows = [titles]
  }

  mutating func add(_ row: [String], to output: inout some TextOutputStream) {
    rows.append(row.map(\.escapedForTerminal))
    if rows.count >= Self.window { flush(to: &output) }
  }

  /// Writes the rows that are held back.
  mutating func flush(to output: inout some TextOutputStream) {
    for row in rows {
      for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) }
    }
    for row in rows {
      var line = ""
      for (index, cell) in row.dropLast().enumerated() {
        line += cell + String(repeating: " ", count: widths[index] - cell.count + 2)
      }
      output.write(line + (row.last ?? "") + "\n")
    }
    rows = []
  }
}
