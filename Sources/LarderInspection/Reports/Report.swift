import Foundation

/// What a command found, for every format.
///
/// The members and the sections are values. The rows may be many, so they are produced while a
/// ``Renderer`` writes them: no report holds them in memory, except a JSON document of several
/// lines.
package struct Report {
  typealias Members = [(name: String, value: JSONValue)]
  typealias Rows = (_ add: (Row) -> Void) throws(InspectionError) -> Ending

  let style: Style
  /// The lines above a table; left out if the style is quiet.
  var title = ""
  /// What is written between the title and the rows of a table.
  var sections: [Section] = []
  /// The members of a JSON document, before its rows.
  var members: Members = []
  /// The columns of the rows; none if the report is a document without rows.
  var columns: [Column] = []
  /// Whether the rows are written as a table for people, too.
  var hasTable = true
  /// The member of a JSON document that has the rows.
  var rowsMember = "rows"
  /// Whether each line of JSON lines has the version of the format.
  var versionsLines = false
  /// Whether a JSON document is one line, and then one for each row.
  var isOneLine = false
  /// Calls `add` with each row.
  var rows: Rows = { _ throws(InspectionError) in Ending() }

  /// Writes the report in the format of its style.
  ///
  /// - Throws: The error of the rows, some of which may have been written.
  package func write(
    to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    var renderer = renderer
    return try write(with: &renderer, to: &output).outcome
  }

  /// Writes the report with a renderer of it.
  ///
  /// - Throws: As ``write(to:)``.
  func write(
    with renderer: inout some Renderer, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Ending {
    renderer.begin(to: &output)
    let ending = try rows { renderer.add($0, to: &output) }
    renderer.end(ending.sections, to: &output)
    return ending
  }

  /// The members of a JSON object for cells in columns.
  static func members(of cells: [Cell], in columns: [Column]) -> Members {
    zip(columns, cells).compactMap { column, cell in
      guard let member = column.member, let value = cell.json else { return nil }
      return (member, value)
    }
  }
}

extension Report {
  /// What is known when all rows have been produced.
  struct Ending {
    var outcome = Outcome.fine
    /// What is written below a table.
    var sections: [Section] = []
    /// Where the scan of a list ended; nil for other reports.
    var scan: ScanEnd?
  }

  /// A part of a report for people, with an empty line before it.
  enum Section {
    /// Lines with a label, which is padded to `width`.
    case facts([Fact], width: Int = 9)
    /// A table of texts. Bars are shares of 1, one for each row.
    case table([Table.Column], [[String]], bars: [Double]? = nil)
    /// Lines, each with its newline.
    case text(String)
    /// Commands to type next, each with what it shows.
    case commands([Fact], width: Int)
    /// No section if only the size of the payload is to be shown.
    case payload(PayloadView)
  }

  struct Fact {
    let label: String
    let text: String
    let tint: Tint?
    /// Whether the text is not folded, because it is to be copied: a key or a command.
    let isWhole: Bool

    init(_ label: String, _ text: String, tint: Tint? = nil, isWhole: Bool = false) {
      (self.label, self.text, self.tint, self.isWhole) = (label, text, tint, isWhole)
    }
  }

  struct Column {
    /// Nil for a column that tables leave out.
    let title: Table.Column?
    /// The name of the member in JSON, and of the column in CSV; nil if only tables have it.
    let member: String?
    private(set) var isInCSV = true

    init(_ title: Table.Column?, _ member: String?) { (self.title, self.member) = (title, member) }

    /// A member of JSON that CSV leaves out, too.
    static func json(_ member: String) -> Column {
      var column = Column(nil, member)
      column.isInCSV = false
      return column
    }
  }

  struct Row: ExpressibleByArrayLiteral {
    let cells: [Cell]
    /// The colour of the first text on a terminal.
    var tint: Tint?
    /// Whether the members of the document say the same: then it is written only where there is no
    /// document, in CSV and JSON lines.
    var isTotal = false

    init(_ cells: [Cell], tint: Tint? = nil, isTotal: Bool = false) {
      (self.cells, self.tint, self.isTotal) = (cells, tint, isTotal)
    }

    init(arrayLiteral cells: Cell...) { self.init(cells) }
  }

  enum Cell {
    case text(String)
    case number(Int)
    /// A sequence, a version, or the number of a file: without commas in tables.
    case sequence(UInt64)
    /// A size in bytes.
    case bytes(Int)
    /// A date, in tables its distance from another one; nil for never.
    case moment(Date?, relativeTo: Date)
    /// A number of seconds.
    case span(Double)
    /// A text that is made only where it is written.
    case computed(() -> String)
    /// A value that people see in other words.
    case shown(String, JSONValue)
    /// No value: null in JSON.
    case none
    /// No value, and no member in JSON.
    case absent

    /// As tables have it.
    var shown: String {
      switch self {
      case .text(let text), .shown(let text, _): text
      case .computed(let text): text()
      case .number(let number): Amount.text(number)
      case .sequence(let number): "\(number)"
      case .bytes(let count): Amount.bytes(count)
      case .moment(let date?, let other):
        Moment.text(ofSpan: abs(date.timeIntervalSince(other)))
      case .moment(nil, _): "unlimited"
      case .span(let seconds): Moment.text(ofSpan: seconds)
      case .none, .absent: "-"
      }
    }

    /// Nil if a JSON object leaves the member out.
    var json: JSONValue? {
      switch self {
      case .text(let text): .string(text)
      case .computed(let text): .string(text())
      case .sequence(let number): .integer(number)
      case .number(let number), .bytes(let number): .integer(number)
      case .moment(let date, _): .optional(date.flatMap(Moment.text))
      case .span(let seconds): .real(seconds)
      case .shown(_, let value): value
      case .none: .null
      case .absent: nil
      }
    }
  }
}
