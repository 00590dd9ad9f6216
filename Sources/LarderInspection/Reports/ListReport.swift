import Larder

extension Inspection {
  /// Writes one row for each record of a selection.
  ///
  /// Damage gets a row too, and the list continues after it. The outcome is that of the records
  /// that are listed, and of parts of the files that cannot be read.
  ///
  /// - Complexity: One step and one checksum for each record. Memory for at most 200 rows; in
  ///   another order than by key, for all that are listed.
  package func list(
    _ selection: Selection, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    var rows = ListRows(style: style, inspection: self)
    var outcome = damage.isEmpty ? Outcome.fine : .damaged
    var ranking = selection.order == .key ? nil : Ranking(selection)
    var scanned = selection
    if ranking != nil { (scanned.limit, scanned.isReversed) = (nil, false) }
    rows.begin(to: &output)
    try forEachItem(in: scanned, keys: style.keys) { item throws(InspectionError) in
      outcome.add(item.state)
      if case .record(let record) = item, ranking != nil {
        ranking?.add(record)
      } else {
        rows.add(item, to: &output)
      }
      return true
    }
    for record in ranking?.ranked() ?? [] { rows.add(.record(record), to: &output) }
    rows.end(to: &output)
    return outcome
  }
}

/// The rows of a list in one of the formats.
private struct ListRows {
  private static let csvNames = [
    "cache", "key", "state", "payloadBytes", "payloadSchemaVersion", "coder", "savedAt",
    "savedAtBits", "ageSeconds", "expiresAt", "secondsLeft", "sequence",
  ]

  let style: Style
  let inspection: Inspection
  private var table: Table
  private var isFirst = true

  init(style: Style, inspection: Inspection) {
    self.style = style
    self.inspection = inspection
    table = Table(
      ["STATE", "AGE", "LEFT", .number("SIZE"), .number("SCHEMA"), "CACHE", "KEY"], style: style)
  }

  func begin(to output: inout some TextOutputStream) {
    switch style.format {
    case .table: if !style.isQuiet { output.write(inspection.heading + "\n\n") }
    case .json:
      var heading = ""
      JSONValue.object(inspection.jsonHeading).write(to: &heading)
      output.write(heading.dropLast() + ",\"records\":[")
    case .jsonl: break
    case .csv: if !style.isQuiet { output.write(Self.csvNames.joined(separator: ",") + "\n") }
    }
  }

  mutating func add(_ item: ScanItem, to output: inout some TextOutputStream) {
    switch style.format {
    case .table: table.add(cells(of: item), tint: item.state.tint, to: &output)
    case .json:
      output.write(isFirst ? "\n" : ",\n")
      JSONValue.object(fields(of: item)).write(to: &output)
    case .jsonl:
      JSONValue.object([("schemaVersion", reportVersion)] + fields(of: item)).write(to: &output)
      output.write("\n")
    case .csv: output.write(csvLine(of: item))
    }
    isFirst = false
  }

  mutating func end(to output: inout some TextOutputStream) {
    switch style.format {
    case .table: table.flush(to: &output)
    case .json: output.write("\n]}\n")
    case .jsonl, .csv: break
    }
  }

  private func cells(of item: ScanItem) -> [String] {
    switch item {
    case .unreadable(let cache, let message):
      return ["damaged", "-", "-", "-", "-", cache?.label ?? "-", "(\(message))"]
    case .record(let found):
      let key = style.text(of: found.key, in: found.cache)
      guard case .success(let record) = found.content else {
        return [found.state.rawValue, "-", "-", "-", "-", found.cache.label, key]
      }
      return [
        found.state.rawValue, found.age(of: record, at: inspection.now),
        found.timeLeft(of: record, at: inspection.now), Amount.bytes(record.payload.count),
        "\(record.schemaVersion)", found.cache.label, key,
      ]
    }
  }

  private func fields(of item: ScanItem) -> [(name: String, value: JSONValue)] {
    switch item {
    case .record(let record): record.jsonFields(at: inspection.now, style: style)
    case .unreadable(let cache, let message):
      [
        ("cache", .optional(cache?.label)), ("key", .null), ("state", .string("damaged")),
        ("fault", .string(message)),
      ]
    }
  }

  private func csvLine(of item: ScanItem) -> String {
    let fields = fields(of: item)
    let cells = Self.csvNames.map { name -> String in
      switch fields.first(where: { $0.name == name })?.value {
      case .string(let text): csvCell(text)
      case .number(let text): text
      default: ""
      }
    }
    return cells.joined(separator: ",") + "\n"
  }
}
