import Larder

/// Writes the rows of a report as comma-separated values below the names of the columns.
struct CSVRenderer: Renderer {
  let report: Report

  mutating func begin(to output: inout some TextOutputStream) {
    let names = report.columns.compactMap { $0.isInCSV ? $0.member : nil }
    if !report.style.isQuiet { output.write(names.joined(separator: ",") + "\n") }
  }

  mutating func add(_ row: Report.Row, to output: inout some TextOutputStream) {
    let cells = zip(report.columns, row.cells).compactMap { column, cell in
      column.isInCSV && column.member != nil ? Self.text(of: cell) : nil
    }
    output.write(cells.joined(separator: ",") + "\n")
  }

  private static func text(of cell: Report.Cell) -> String {
    switch cell.json {
    case .string(let text): csvCell(text)
    case .number(let text): text
    default: ""
    }
  }
}

/// A text as a cell of a CSV file, which no spreadsheet reads as a formula.
///
/// A text that begins like a formula gets a leading single quote, unless it is a whole number.
/// Characters that could control a terminal are escaped.
func csvCell(_ text: String) -> String {
  var cell = text.escapedForTerminal
  if let first = cell.unicodeScalars.first, formulaStarts.contains(first), Int(cell) == nil {
    cell = "'" + cell
  }
  // Compares scalars: a quote or comma with a combining mark is another `Character`.
  guard cell.unicodeScalars.contains(where: { $0 == "\"" || $0 == "," }) else { return cell }
  let pieces = cell.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false)
  return "\"" + pieces.map(String.init).joined(separator: "\"\"") + "\""
}

/// The characters that begin a formula; the last four are their full-width forms.
private let formulaStarts: Set<Unicode.Scalar> = [
  "=", "+", "-", "@", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}",
]
