import Larder
import LarderEngine

extension Inspection {
  /// Writes the batches of write-ahead logs, or their rows.
  ///
  /// No database is opened.
  ///
  /// - Parameters:
  ///   - path: A log, or the directory of a database, whose logs are read in order.
  ///   - listsEntries: Whether each row is written, and not each batch.
  ///   - style: The style of the report.
  ///   - output: Receives the report.
  /// - Returns: `damaged` if a part of a log cannot be read, except for an end that was cut off: a
  ///   write in progress and a power loss leave one. The sequences of a store have no gaps; in a
  ///   database of another program they may also repeat.
  /// - Throws: An ``InspectionError`` with the status `unavailable` or `io`.
  /// - Complexity: One log in memory at a time.
  package static func logs(
    at path: String, listsEntries: Bool, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let files = try FileArgument(path) { $0.logs }
    var report = LogReport(of: files, listsEntries: listsEntries, style: style)
    files.writeHeading(style: style, to: &output)
    for name in files.names { report.add(name, try files.bytes(of: name), to: &output) }
    report.rows.end(to: &output)
    return report.outcome
  }
}

private struct LogReport {
  private let listsEntries: Bool
  private let style: Style
  private let isStore: Bool
  var rows: Rows
  private(set) var outcome = Outcome.fine

  init(of files: FileArgument, listsEntries: Bool, style: Style) {
    (self.listsEntries, self.style, isStore) = (listsEntries, style, files.isStore)
    let place = [
      Rows.Column("LOG", "log"), Rows.Column(.number("BYTE"), "offset"),
      Rows.Column(.number("SEQUENCE"), "sequence"),
    ]
    rows = Rows(
      listsEntries
        ? place + changeColumns
        : place + [
          Rows.Column(.number("PUTS"), "puts"), Rows.Column(.number("REMOVALS"), "removals"),
          Rows.Column(.number("BYTES"), "bytes"), Rows.Column("STATE", "state"),
        ], under: [("schemaVersion", reportVersion), ("path", .string(files.path))], style: style)
  }

  mutating func add(_ name: String, _ bytes: [UInt8], to output: inout some TextOutputStream) {
    var scan = LogScan(bytes, of: LogScan.Kind(ofStore: isStore))
    while let part = scan.nextPart() {
      switch part {
      case .record(let record):
        scan.withBytes(of: record) { add($0, name, at: record.start, to: &output) }
      case .damaged(let place, let next):
        outcome = .damaged
        addFault("damaged, valid again at \(next)", name, at: place, to: &output)
      case .torn(let place):
        addFault("cut off, \(bytes.count - place) bytes", name, at: place, to: &output)
      }
    }
  }

  private mutating func addFault(
    _ message: String, _ name: String, at place: Int, to output: inout some TextOutputStream
  ) {
    let start: [Rows.Cell] = [.text(name), .number(place), .none]
    rows.add(
      start
        + (listsEntries ? [.text(message), .none, .none] : [.none, .none, .none, .text(message)]),
      tint: .bad, to: &output)
  }

  private mutating func add(
    _ batch: RawSpan, _ name: String, at place: Int, to output: inout some TextOutputStream
  ) {
    guard let first = LogBatch.sequence(of: batch), let entries = LogBatch.rows(of: batch) else {
      outcome = .damaged
      return addFault("a malformed batch", name, at: place, to: &output)
    }
    guard listsEntries else {
      let puts = entries.count { $0.value != nil }
      return rows.add(
        [
          .text(name), .number(place), .sequence(first), .number(puts),
          .number(entries.count - puts), .bytes(batch.byteCount), .text("whole"),
        ], to: &output)
    }
    for (index, entry) in entries.enumerated() {
      rows.add(
        [.text(name), .number(place), .sequence(first &+ UInt64(index))]
          + changeCells(valueBytes: entry.value?.count, entry.key, inStore: isStore, style),
        to: &output)
    }
  }
}

/// The columns of a put or a removal.
let changeColumns = [
  Rows.Column("CHANGE", "change"), Rows.Column(.number("BYTES"), "valueBytes"),
  Rows.Column("KEY", "key"),
]

/// The cells of a put with a value of `valueBytes`, or of a removal if that is nil.
func changeCells(
  valueBytes: Int?, _ key: [UInt8], inStore isStore: Bool, _ style: Style
) -> [Rows.Cell] {
  [
    .text(valueBytes == nil ? "removal" : "put"), valueBytes.map(Rows.Cell.bytes) ?? .none,
    .text(style.text(ofDatabaseKey: key, inStore: isStore)),
  ]
}
