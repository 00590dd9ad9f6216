import Larder

/// Writes rows of texts in aligned columns.
///
/// Columns are aligned within a window of rows and never become narrower, so that a table of any
/// length can be streamed. The last column is not padded and should hold the longest texts.
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

  /// Writes the buffered rows.
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
