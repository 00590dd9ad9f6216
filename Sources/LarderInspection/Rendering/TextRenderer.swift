import Larder

/// Writes a report for people: its title, its sections, and a table of its rows.
struct TextRenderer: Renderer {
  private let report: Report
  private var table: Table?
  private var isFirst = true

  init(_ report: Report) {
    self.report = report
    guard report.hasTable, !report.columns.isEmpty else { return }
    table = Table(report.columns.compactMap(\.title), style: report.style)
  }

  mutating func begin(to output: inout some TextOutputStream) {
    if !report.style.isQuiet, !report.title.isEmpty {
      output.write(report.title + "\n")
      isFirst = false
    }
    for section in report.sections { write(section, to: &output) }
    if table != nil { separate(to: &output) }
  }

  mutating func add(_ row: Report.Row, to output: inout some TextOutputStream) {
    guard table != nil, !row.isTotal else { return }
    let shown = zip(report.columns, row.cells).compactMap { $0.title == nil ? nil : $1.shown }
    table?.add(shown, tint: row.tint, to: &output)
  }

  mutating func flush(to output: inout some TextOutputStream) { table?.flush(to: &output) }

  mutating func end(_ sections: [Report.Section], to output: inout some TextOutputStream) {
    flush(to: &output)
    for section in sections { write(section, to: &output) }
  }

  private mutating func write(
    _ section: Report.Section, to output: inout some TextOutputStream
  ) {
    switch section {
    case .facts(let facts, let width), .commands(let facts, let width):
      separate(to: &output)
      for fact in facts {
        let label = fact.label + String(repeating: " ", count: width - fact.label.count)
        output.writeFolded(
          fact.text.escapedForTerminal, after: label, report.style.isColored ? fact.tint : nil,
          width: fact.isWhole ? nil : report.style.width)
      }
    case .table(let columns, let rows, let bars):
      separate(to: &output)
      var table = Table(columns + (bars == nil ? [] : [""]), style: report.style)
      for (number, row) in rows.enumerated() {
        let bar = bars.map { String(repeating: "#", count: Int(($0[number] * 30).rounded(.up))) }
        table.add(row + (bar.map { [$0] } ?? []), to: &output)
      }
      table.flush(to: &output)
    case .text(let text):
      separate(to: &output)
      for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
        output.writeFolded(String(line), after: "", width: report.style.width)
      }
    case .payload(.size), .payload(.nothing): break
    case .payload(let view):
      separate(to: &output)
      view.write(to: &output)
    }
  }

  /// Writes an empty line, unless nothing is above it.
  private mutating func separate(to output: inout some TextOutputStream) {
    if !isFirst { output.write("\n") }
    isFirst = false
  }
}
