/// Writes a report in one format.
protocol Renderer {
  /// Writes what is before the rows.
  mutating func begin(to output: inout some TextOutputStream)

  /// Writes a row, or keeps it for later.
  mutating func add(_ row: Report.Row, to output: inout some TextOutputStream)

  /// Writes the rows that are kept, if more rows can follow them.
  mutating func flush(to output: inout some TextOutputStream)

  /// Writes the rest; required once after the last row.
  mutating func end(_ sections: [Report.Section], to output: inout some TextOutputStream)
}

extension Renderer {
  mutating func flush(to output: inout some TextOutputStream) {}
  mutating func end(_ sections: [Report.Section], to output: inout some TextOutputStream) {}
}

extension Report {
  /// A writer of the report in the format of its style.
  var renderer: any Renderer {
    switch style.format {
    case .table: TextRenderer(self)
    case .json: JSONRenderer(self)
    case .jsonl: JSONLinesRenderer(report: self)
    case .csv: CSVRenderer(report: self)
    }
  }
}

extension Style {
  /// Refuses CSV for a report without rows, or whose rows differ in their columns.
  ///
  /// Called before a command changes something. `subject` begins the message.
  func expectNoCSV(_ subject: String) throws(InspectionError) {
    if format == .csv { throw InspectionError(.usage, "\(subject) not support csv") }
  }
}
