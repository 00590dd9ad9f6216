import Larder

extension Inspection {
  /// The blocks of a table, or its entries.
  ///
  /// No database is opened.
  ///
  /// - Parameters:
  ///   - path: A table of LevelDB.
  ///   - listsEntries: Whether each entry is written, and not each block.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if a block is damaged, or else `unsupported` if
  ///   one has a compression that LevelDB does not read.
  /// - Throws: An ``InspectionError`` with the status `damaged` or `unsupported` if that is the
  ///   footer or the index of the table, so that its blocks cannot be found; `usage` if `path` is a
  ///   directory; `unavailable`, `io`.
  /// - Complexity: The table, and one block of it decompressed, in memory.
  package static func table(
    at path: String, listsEntries: Bool, style: Style
  ) throws(InspectionError) -> Report {
    let files = try FileArgument(path) { _ in [] }
    guard let name = files.names.first else {
      throw InspectionError(.usage, "\(path) is a directory: name one of its tables")
    }
    let (place, bytes) = ("\(files.path)/\(name)", try files.bytes(of: name))
    let table: TableFile
    do throws(TableFile.Fault) {
      table = try TableFile(bytes)
    } catch {
      throw InspectionError(error.outcome, "\(place), \(error)")
    }
    let entry: [Report.Column] = [
      .init(.number("BYTE"), "offset"), .init(.number("SEQUENCE"), "sequence"),
    ]
    let block: [Report.Column] = [
      .init(.number("BYTE"), "offset"), .init(.number("BYTES"), "bytes"),
      .init(.number("DECOMPRESSED"), "decompressedBytes"), .init(.number("ENTRIES"), "entries"),
      .init("STATE", "state"), .init(.name("FIRST KEY"), "firstKey"),
    ]
    return Report(
      style: style, title: files.title,
      members: [
        ("schemaVersion", reportVersion), ("path", .string(place)),
        ("bytes", .integer(bytes.count)), ("filter", .optional(table.filterPolicy)),
        ("filterFault", .optional(table.filterFault?.description)),
      ],
      columns: listsEntries ? entry + changeColumns : block
    ) { add in
      var rows = TableRows(listsEntries: listsEntries, isStore: files.isStore, style: style)
      for block in table.blocks { rows.read(block, of: table, add) }
      if let fault = table.filterFault { rows.outcome.add(fault) }
      return Report.Ending(
        outcome: rows.outcome,
        sections: style.isQuiet ? [] : [rows.summary(of: table, bytes.count)])
    }
  }
}

extension TableFile.Fault {
  /// The outcome of a command that met the fault.
  var outcome: Outcome { isUnsupported ? .unsupported : .damaged }
}

extension Outcome {
  /// Notes a fault: damage outweighs what is not supported.
  mutating func add(_ fault: TableFile.Fault) {
    if self != .damaged { self = fault.outcome }
  }
}

private struct TableRows {
  let listsEntries: Bool
  let isStore: Bool
  let style: Style
  var outcome = Outcome.fine
  private var puts = 0
  private var removals = 0
  private var sequences: ClosedRange<UInt64>?

  init(listsEntries: Bool, isStore: Bool, style: Style) {
    (self.listsEntries, self.isStore, self.style) = (listsEntries, isStore, style)
  }

  /// Calls `add` with the row of a block, or with a row for each of its entries.
  mutating func read(
    _ place: TableFile.Place, of table: TableFile, _ add: (Report.Row) -> Void
  ) {
    var (count, first): (Int, [UInt8]?) = (0, nil)
    do throws(TableFile.Fault) {
      let block = try table.block(at: place)
      var entries = TableFile.Entries(of: block)
      while let entry = try entries.next() {
        (count, first) = (count + 1, first ?? entry.key)
        note(entry)
        guard listsEntries else { continue }
        let start: [Report.Cell] = [.number(place.offset), .sequence(entry.sequence)]
        add(
          Report.Row(
            start
              + changeCells(
                valueBytes: entry.isRemoval ? nil : entry.value.count, entry.key,
                inStore: isStore, style)))
      }
      guard !listsEntries else { return }
      let key = first.map { Report.Cell.text(style.text(ofDatabaseKey: $0, inStore: isStore)) }
      add([
        .number(place.offset), .bytes(place.count), .bytes(block.bytes.count), .number(count),
        .text("whole"), key ?? .none,
      ])
    } catch {
      outcome.add(error)
      let message = Report.Cell.text(error.message)
      add(
        Report.Row(
          listsEntries
            ? [.number(place.offset), .none, message, .none, .none]
            : [.number(place.offset), .bytes(place.count), .none, .none, message, .none],
          tint: .bad))
    }
  }

  private mutating func note(_ entry: TableFile.Entry) {
    if entry.isRemoval { removals += 1 } else { puts += 1 }
    let known = sequences ?? entry.sequence...entry.sequence
    sequences =
      min(known.lowerBound, entry.sequence)...max(known.upperBound, entry.sequence)
  }

  func summary(of table: TableFile, _ byteCount: Int) -> Report.Section {
    let changes = "\(Amount.text(puts)) puts, \(Amount.text(removals)) removals"
    let size = table.filter.map { ", \(Amount.bytes($0.count))" } ?? ""
    let fault = table.filterFault.map { "damaged, \($0)" }
    var facts: [Report.Fact] = [
      .init("size", Amount.bytes(byteCount)),
      .init("entries", "\(changes), in \(Amount.text(table.blocks.count)) blocks"),
    ]
    if let sequences {
      facts.append(.init("sequences", "\(sequences.lowerBound) to \(sequences.upperBound)"))
    }
    let policy = table.filterPolicy.map { $0 + size }
    return .facts(facts + [.init("filter", fault ?? policy ?? "none")], width: 11)
  }
}
