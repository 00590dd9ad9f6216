import Foundation

/// Writes rows of values in each format, as a stream except for JSON documents.
struct Rows {
  struct Column {
    /// Nil for a column that tables leave out.
    let title: Table.Column?
    /// The name of the member in JSON, and of the column in CSV.
    let member: String

    init(_ title: Table.Column?, _ member: String) { (self.title, self.member) = (title, member) }
  }

  enum Cell {
    case text(String)
    case number(Int)
    /// A sequence, or the number of a file.
    case sequence(UInt64)
    /// A size in bytes.
    case bytes(Int)
    /// A date, in tables its distance from another one; nil for never.
    case moment(Date?, relativeTo: Date)
    case none

    fileprivate var shown: String {
      switch self {
      case .text(let text): text
      case .number(let number): Amount.text(number)
      case .sequence(let number): "\(number)"
      case .bytes(let count): Amount.bytes(count)
      case .moment(let date?, let other):
        Moment.text(ofSpan: abs(date.timeIntervalSince(other)))
      case .moment(nil, _): "unlimited"
      case .none: "-"
      }
    }

    fileprivate var json: JSONValue {
      switch self {
      case .text(let text): .string(text)
      case .sequence(let number): .integer(Int(clamping: number))
      case .number(let number), .bytes(let number): .integer(number)
      case .moment(let date, _): .optional(date.flatMap(Moment.text))
      case .none: .null
      }
    }

    fileprivate var csv: String {
      switch self {
      case .text(let text): csvCell(text)
      case .number(let number), .bytes(let number): "\(number)"
      case .sequence(let number): "\(number)"
      case .moment(let date, _): date.flatMap(Moment.text) ?? ""
      case .none: ""
      }
    }
  }

  private let columns: [Column]
  private let heading: [(name: String, value: JSONValue)]
  private let style: Style
  private var table: Table
  private var rows: [JSONValue] = []
  private var hasWrittenNames = false

  /// `heading` are the first members of a JSON document.
  init(_ columns: [Column], under heading: [(name: String, value: JSONValue)], style: Style) {
    (self.columns, self.heading, self.style) = (columns, heading, style)
    table = Table(columns.compactMap(\.title), style: style)
  }

  mutating func add(
    _ cells: [Cell], tint: Tint? = nil, to output: inout some TextOutputStream
  ) {
    switch style.format {
    case .table:
      let shown = zip(columns, cells).compactMap { $0.title == nil ? nil : $1.shown }
      table.add(shown, tint: tint, to: &output)
    case .csv:
      writeNames(to: &output)
      output.write(cells.map(\.csv).joined(separator: ",") + "\n")
    case .json, .jsonl:
      let row = JSONValue.object(
        zip(columns, cells).map { (name: $0.member, value: $1.json) })
      guard style.format == .jsonl else { return rows.append(row) }
      row.write(to: &output)
      output.write("\n")
    }
  }

  /// Writes the line with the names of the columns, once.
  private mutating func writeNames(to output: inout some TextOutputStream) {
    guard !hasWrittenNames, !style.isQuiet else { return }
    hasWrittenNames = true
    output.write(columns.map(\.member).joined(separator: ",") + "\n")
  }

  /// Writes the rows of a table that were added, or the names of the columns.
  mutating func flush(to output: inout some TextOutputStream) {
    switch style.format {
    case .table: table.flush(to: &output)
    case .csv: writeNames(to: &output)
    case .json, .jsonl: break
    }
  }

  /// Writes the rest; required once after the last row.
  mutating func end(to output: inout some TextOutputStream) {
    switch style.format {
    case .json: rows.write(under: heading, style: style, to: &output)
    case .table, .csv, .jsonl: flush(to: &output)
    }
  }
}
