/// Writes a report as one JSON document.
struct JSONRenderer: Renderer {
  private let report: Report
  /// The rows of a document of several lines.
  private var rows: [JSONValue] = []
  private var isFirst = true

  init(_ report: Report) { self.report = report }

  mutating func begin(to output: inout some TextOutputStream) {
    guard report.isOneLine else { return }
    var members = ""
    JSONValue.object(report.members).write(to: &members)
    output.write(
      report.columns.isEmpty
        ? members + "\n" : members.dropLast() + ",\"\(report.rowsMember)\":[")
  }

  mutating func add(_ row: Report.Row, to output: inout some TextOutputStream) {
    guard !row.isTotal else { return }
    let value = JSONValue.object(Report.members(of: row.cells, in: report.columns))
    guard report.isOneLine else { return rows.append(value) }
    output.write(isFirst ? "\n" : ",\n")
    isFirst = false
    value.write(to: &output)
  }

  mutating func end(_ sections: [Report.Section], to output: inout some TextOutputStream) {
    guard !report.isOneLine else { return output.write(report.columns.isEmpty ? "" : "\n]}\n") }
    var members = report.members
    if !report.columns.isEmpty { members.append((report.rowsMember, .array(rows))) }
    JSONValue.object(members).writePretty(to: &output)
    output.write("\n")
  }
}

/// Writes each row of a report as a JSON object on a line, or a document without rows on one line.
struct JSONLinesRenderer: Renderer {
  let report: Report

  mutating func begin(to output: inout some TextOutputStream) {
    if report.columns.isEmpty { write(report.members, to: &output) }
  }

  mutating func add(_ row: Report.Row, to output: inout some TextOutputStream) {
    let version = report.versionsLines ? [(name: "schemaVersion", value: reportVersion)] : []
    write(version + Report.members(of: row.cells, in: report.columns), to: &output)
  }

  private func write(_ members: Report.Members, to output: inout some TextOutputStream) {
    JSONValue.object(members).write(to: &output)
    output.write("\n")
  }
}
