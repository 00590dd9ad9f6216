import Larder

extension Inspection {
  /// The batches of write-ahead logs, or their rows.
  ///
  /// No database is opened.
  ///
  /// - Parameters:
  ///   - path: A log, or the directory of a database, whose logs are read in order.
  ///   - listsEntries: Whether each row is written, and not each batch.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if a part of a log cannot be read, except for an
  ///   end that was cut off: a write in progress and a power loss leave one. The sequences of a
  ///   store have no gaps; in a database of another program they may also repeat.
  /// - Throws: An ``InspectionError`` with the status `unavailable` or `io`.
  /// - Complexity: One log in memory at a time.
  package static func logs(
    at path: String, listsEntries: Bool, style: Style
  ) throws(InspectionError) -> Report {
    let files = try FileArgument(path) { $0.logs }
    let place: [Report.Column] = [
      .init("LOG", "log"), .init(.number("BYTE"), "offset"), .init(.number("SEQUENCE"), "sequence"),
    ]
    let batch: [Report.Column] = [
      .init(.number("PUTS"), "puts"), .init(.number("REMOVALS"), "removals"),
      .init(.number("BYTES"), "bytes"), .init("STATE", "state"),
    ]
    return Report(
      style: style, title: files.title,
      members: [("schemaVersion", reportVersion), ("path", .string(files.path))],
      columns: place + (listsEntries ? changeColumns : batch)
    ) { add throws(InspectionError) in
      var logs = LogRows(listsEntries: listsEntries, style: style, isStore: files.isStore)
      for name in files.names { logs.read(name, try files.bytes(of: name), add) }
      return Report.Ending(outcome: logs.outcome)
    }
  }
}

private struct LogRows {
  let listsEntries: Bool
  let style: Style
  let isStore: Bool
  private(set) var outcome = Outcome.fine

  init(listsEntries: Bool, style: Style, isStore: Bool) {
    (self.listsEntries, self.style, self.isStore) = (listsEntries, style, isStore)
  }

  /// Calls `add` with each row of a log.
  mutating func read(_ name: String, _ bytes: [UInt8], _ add: (Report.Row) -> Void) {
    var scan = LogScan(bytes, of: LogScan.Kind(ofStore: isStore))
    while let part = scan.nextPart() {
      switch part {
      case .record(let record):
        scan.withBytes(of: record) { read($0, name, at: record.start, add) }
      case .damaged(let place, let next):
        outcome = .damaged
        add(fault("damaged, valid again at \(next)", name, at: place))
      case .torn(let place):
        add(fault("cut off, \(bytes.count - place) bytes", name, at: place))
      }
    }
  }

  private func fault(_ message: String, _ name: String, at place: Int) -> Report.Row {
    let start: [Report.Cell] = [.text(name), .number(place), .none]
    let rest: [Report.Cell] =
      listsEntries ? [.text(message), .none, .none] : [.none, .none, .none, .text(message)]
    return Report.Row(start + rest, tint: .bad)
  }

  private mutating func read(
    _ batch: RawSpan, _ name: String, at place: Int, _ add: (Report.Row) -> Void
  ) {
    guard let first = LogBatch.sequence(of: batch), let entries = LogBatch.rows(of: batch) else {
      outcome = .damaged
      return add(fault("a malformed batch", name, at: place))
    }
    guard listsEntries else {
      let puts = entries.count { $0.value != nil }
      return add([
        .text(name), .number(place), .sequence(first), .number(puts),
        .number(entries.count - puts), .bytes(batch.byteCount), .text("whole"),
      ])
    }
    for (index, entry) in entries.enumerated() {
      let start: [Report.Cell] = [
        .text(name), .number(place), .sequence(first &+ UInt64(index)),
      ]
      add(
        Report.Row(
          start
            + changeCells(valueBytes: entry.value?.count, entry.key, inStore: isStore, style)))
    }
  }
}

/// The columns of a put or a removal.
let changeColumns: [Report.Column] = [
  .init("CHANGE", "change"), .init(.number("BYTES"), "valueBytes"), .init(.name("KEY"), "key"),
]

/// The cells of a put with a value of `valueBytes`, or of a removal if that is nil.
func changeCells(
  valueBytes: Int?, _ key: [UInt8], inStore isStore: Bool, _ style: Style
) -> [Report.Cell] {
  [
    .text(valueBytes == nil ? "removal" : "put"), valueBytes.map(Report.Cell.bytes) ?? .none,
    .text(style.text(ofDatabaseKey: key, inStore: isStore)),
  ]
}
