import Foundation
import Larder

/// Writes a report as part of a page: its sections, and a table of its rows.
///
/// A row that names a record links to its entry, and one that names a cache to its entries.
struct HTMLRenderer: Renderer {
  /// The most characters of a key or a name in a table; its own view shows all.
  private static let nameCharacters = 160

  private let report: Report
  private let caption: String
  private let headingBelow: String?
  private let isLive: Bool
  // The places of the members of a row that name what it links to; nil if it has none.
  private let cachePlace: Int?
  private let keyPlace: Int?
  private let prefixPlace: Int?
  private let othersPlace: Int?
  private let bar: (kind: Bar, places: [Int])?
  /// The rows of a table with bars that compare them, which need the largest number of all.
  private var waiting: [Report.Row] = []
  private(set) var rowCount = 0

  /// What is drawn at the end of a row.
  enum Bar {
    /// A bar as long as the number of a member; the largest of all rows fills its cell.
    case length(String)
    /// A bar that the numbers of some members divide.
    case shares([(member: String, tint: Tint)])

    fileprivate var members: [String] {
      switch self {
      case .length(let member): [member]
      case .shares(let parts): parts.map(\.member)
      }
    }
  }

  /// - Parameters:
  ///   - report: The report, in any format.
  ///   - caption: What the table shows, for people who do not see it.
  ///   - bar: Which numbers of a row are drawn, too; nil for none.
  ///   - headingBelow: The heading of what follows the table; nil for none.
  ///   - isLive: Whether the rows are newer than the snapshot, so that links need a new one.
  init(
    _ report: Report, caption: String, bar: Bar? = nil, headingBelow: String? = nil,
    isLive: Bool = false
  ) {
    (self.report, self.caption, self.headingBelow) = (report, caption, headingBelow)
    self.isLive = isLive
    func place(_ member: String) -> Int? {
      report.columns.firstIndex { $0.member == member }
    }
    cachePlace = place("cache")
    keyPlace = report.style.isRedacted ? nil : place("key")
    prefixPlace = place("prefix")
    othersPlace = place("others")
    self.bar = bar.map { ($0, $0.members.compactMap(place)) }
  }

  private var hasTable: Bool { report.hasTable && report.columns.contains { $0.title != nil } }

  mutating func begin(to output: inout some TextOutputStream) {
    for section in report.sections { output.write(Markup(section)) }
    guard hasTable else { return }
    let columns = report.columns.compactMap(\.title)
    output.write(Markup.tableStart(columns, caption: caption, hasBars: bar != nil))
  }

  mutating func add(_ row: Report.Row, to output: inout some TextOutputStream) {
    guard hasTable, !row.isTotal else { return }
    rowCount += 1
    guard let bar else { return output.write(markup(of: row, bar: nil)) }
    switch bar.kind {
    case .length: waiting.append(row)
    case .shares(let parts):
      let shares = zip(numbers(of: row), parts).map { ($0, $1.tint) }
      output.write(markup(of: row, bar: .shares(shares)))
    }
  }

  mutating func end(_ sections: [Report.Section], to output: inout some TextOutputStream) {
    if hasTable {
      let most = waiting.compactMap { numbers(of: $0).first }.max() ?? 0
      for row in waiting {
        output.write(markup(of: row, bar: .bar(numbers(of: row).first ?? 0, of: most)))
      }
      output.write(Markup.tableEnd)
    }
    if let headingBelow, !sections.isEmpty {
      output.write("<h2>\(headingBelow)</h2>\n" as Markup)
    }
    for section in sections { output.write(Markup(section)) }
  }

  /// The numbers of a row that are drawn.
  private func numbers(of row: Report.Row) -> [Int] {
    (bar?.places ?? []).map { place in
      switch row.cells[place] {
      case .number(let number), .bytes(let number): number
      default: 0
      }
    }
  }

  private func markup(of row: Report.Row, bar: Markup?) -> Markup {
    let links = links(of: row)
    var cells: Markup = ""
    var tint = row.tint
    for (column, cell) in zip(report.columns, row.cells) {
      guard let title = column.title else { continue }
      var shown =
        title.isShortened ? "\(cell.shown.shortened(to: Self.nameCharacters))" : Markup(cell)
      if let target = links[title.title] { shown = "<a href=\"\(target)\">\(shown)</a>" }
      let style = title.isRight ? "n" : title.isShortened ? "name" : "t"
      if title.isTinted, let color = tint {
        cells += "<td class=\"\(style) \(color.styleName)\"><span class=dot>\(shown)</span></td>"
        tint = nil
      } else {
        cells += "<td class=\(style)>\(shown)</td>"
      }
    }
    if let bar { cells += "<td class=barcell>\(bar)</td>" }
    return "<tr>\(cells)</tr>\n"
  }

  private func isSumOfOthers(_ row: Report.Row) -> Bool {
    guard let othersPlace, case .number = row.cells[othersPlace] else { return false }
    return true
  }

  /// The addresses that the cells of a row link to, by the titles of their columns.
  private func links(of row: Report.Row) -> [String: String] {
    guard let cachePlace, case .text(let cache) = row.cells[cachePlace] else { return [:] }
    var links = ["CACHE": PageView.entries(ofCache: cache, isNew: isLive)]
    if let prefixPlace, case .text(let prefix) = row.cells[prefixPlace], !prefix.isEmpty,
      !isSumOfOthers(row)
    {
      links["PREFIX"] = PageView.entries(ofCache: cache, prefix: prefix)
    }
    // The row of an unreadable part has no key.
    if let keyPlace, case .text(let key) = row.cells[keyPlace] {
      links["KEY"] = PageView.entry(key, ofCache: cache, isNew: isLive)
    }
    return links
  }
}

extension Markup {
  /// A section of a report.
  ///
  /// Commands are left out: the page has links instead.
  init(_ section: Report.Section) {
    switch section {
    case .facts(let facts, _): self = Markup(facts)
    case .table(let columns, let rows, let bars):
      self = Markup.table(columns, rows, bars: bars, caption: columns.first?.title ?? "")
    case .text(let text): self = "<p>\(lines: text)</p>\n"
    case .commands: self = ""
    case .payload(let view): self = Markup(view)
    }
  }

  /// Facts as a list of terms; a fact without a label belongs to the one before.
  private init(_ facts: [Report.Fact]) {
    var items: Markup = ""
    for (number, fact) in facts.enumerated() {
      let text =
        fact.isWhole ? Markup(code: fact.text, label: fact.label) : Markup(prose: fact.text)
      let color = fact.tint.map { $0.styleName } ?? ""
      if !fact.label.isEmpty {
        items += "<dt class=\"\(color)\">\(fact.label)</dt>"
      } else if number == 0 {
        self = "<p>\(text)</p>\n"
        return
      }
      items += "<dd>\(text)</dd>\n"
    }
    self = "<dl class=facts>\n\(items)</dl>\n"
  }

  /// A key or a command; a long one can be scrolled.
  private init(code text: String, label: String) {
    guard text.utf8.count > 500 else {
      self = "<code>\(text)</code>"
      return
    }
    self = "<code class=long role=region aria-label=\"\(label)\" tabindex=0>\(text)</code>"
  }

  /// A text in which what is between backquotes is code.
  private init(prose text: String) {
    let parts = text.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
    guard !parts.count.isMultiple(of: 2) else {
      self = "\(text)"
      return
    }
    self = ""
    for (number, part) in parts.enumerated() {
      self += number.isMultiple(of: 2) ? "\(part)" : "<code>\(part)</code>"
    }
  }

  /// A table of texts, each row with a bar whose length is a share of 1.
  static func table(
    _ columns: [Table.Column], _ rows: [[String]], bars: [Double]? = nil, caption: String
  ) -> Markup {
    var body = tableStart(columns, caption: caption, hasBars: bars != nil)
    for (number, row) in rows.enumerated() {
      let cells = zip(columns, row).map { column, text -> Markup in
        "<td class=\(column.isRight ? "n" : "t")>\(text)</td>"
      }
      let bar = bars.map { bars -> Markup in
        "<td class=barcell>\(Markup.bar(Int(1000 * bars[number]), of: 1000))</td>"
      }
      body += "<tr>\(cells)\(bar ?? "")</tr>\n"
    }
    return body + tableEnd
  }

  static func tableStart(
    _ columns: [Table.Column], caption: String, hasBars: Bool
  ) -> Markup {
    let heads = columns.map { column -> Markup in
      let title = column.title.prefix(1) + column.title.dropFirst().lowercased()
      return "<th scope=col class=\(column.isRight ? "n" : "t")>\(String(title))</th>"
    }
    // The bars repeat a column of numbers.
    let bars: Markup = hasBars ? "<td class=barcell></td>" : ""
    return """
      <div class=scroll role=region aria-label="\(caption)" tabindex=0>\
      <table\(hasBars ? " class=bars" as Markup : "")>
      <thead><tr>\(heads)\(bars)</tr></thead>
      <tbody>

      """
  }

  static let tableEnd: Markup = "</tbody></table></div>\n"

  /// A bar whose length is the share of a number in another one.
  static func bar(_ number: Int, of most: Int) -> Markup {
    let tenths = most > 0 ? Int(1000 * Double(max(number, 0)) / Double(most)) : 0
    let width = number > 0 ? max(tenths, 4) : 0
    return """
      <svg class=bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden=true>\
      <rect width="\(width)" height="10"/></svg>
      """
  }

  /// A bar with a part for each number, in its colour.
  static func shares(_ parts: [(number: Int, tint: Tint)]) -> Markup {
    let total = parts.reduce(0) { $0 + max($1.number, 0) }
    var (drawn, x) = ("" as Markup, 0)
    for (number, tint) in parts where number > 0 {
      let width = Int(1000 * Double(number) / Double(total))
      drawn += "<rect class=\(tint.styleName) x=\"\(x)\" width=\"\(width)\" height=\"10\"/>"
      x += width
    }
    return """
      <svg class="bar states" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden=true>\
      \(drawn)</svg>
      """
  }

  fileprivate init(_ cell: Report.Cell) {
    switch cell {
    case .moment(let date?, _):
      let text = Moment.text(date)
      self =
        text.map { "<time datetime=\"\($0)\" title=\"\($0)\">\(cell.shown)</time>" }
        ?? "\(cell.shown)"
    case .bytes(let count):
      self = "<span title=\"\(Amount.text(count)) bytes\">\(cell.shown)</span>"
    default: self = "\(cell.shown)"
    }
  }
}

extension Tint {
  /// The name of the colour in the style sheet.
  var styleName: String { "\(self)" }
}
