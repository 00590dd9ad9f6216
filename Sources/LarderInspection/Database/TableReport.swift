import Larder
import LarderEngine

extension Inspection {
  /// Writes the blocks of a table, or its entries.
  ///
  /// No database is opened.
  ///
  /// - Parameters:
  ///   - path: A table of LevelDB.
  ///   - listsEntries: Whether each entry is written, and not each block.
  ///   - style: The style of the report.
  ///   - output: Receives the report.
  /// - Returns: `damaged` if a block is damaged, or else `unsupported` if one has a compression
  ///   that LevelDB does not read.
  /// - Throws: An ``InspectionError`` with the status `damaged` or `unsupported` if that is the
  ///   footer or the index of the table, so that its blocks cannot be found; `usage` if `path` is a
  ///   directory; `unavailable`, `io`.
  /// - Complexity: The table, and one block of it decompressed, in memory.
  package static func table(
    at path: String, listsEntries: Bool, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
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
    files.writeHeading(style: style, to: &output)
    let heading: [(name: String, value: JSONValue)] = [
      ("schemaVersion", reportVersion), ("path", .string(place)),
      ("bytes", .integer(bytes.count)), ("filter", .optional(table.filterPolicy)),
      ("filterFault", .optional(table.filterFault?.description)),
    ]
    var report = TableReport(
      listsEntries: listsEntries, inStore: files.isStore, heading, style: style)
    for block in table.blocks { report.add(block, of: table, to: &output) }
    report.rows.end(to: &output)
    if style.format == .table { report.writeSummary(of: table, bytes.count, to: &output) }
    if let fault = table.filterFault { report.outcome.add(fault) }
    return report.outcome
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

private struct TableReport {
  private let listsEntries: Bool
  private let isStore: Bool
  private let style: Style
  var rows: Rows
  var outcome = Outcome.fine
  private var puts = 0
  private var removals = 0
  private var sequences: ClosedRange<UInt64>?

  init(
    listsEntries: Bool, inStore isStore: Bool, _ heading: [(name: String, value: JSONValue)],
    style: Style
  ) {
    (self.listsEntries, self.isStore, self.style) = (listsEntries, isStore, style)
    let place = Rows.Column(.number("BYTE"), "offset")
    rows = Rows(
      listsEntries
        ? [place, Rows.Column(.number("SEQUENCE"), "sequence")] + changeColumns
        : [
          place, Rows.Column(.number("BYTES"), "bytes"),
          Rows.Column(.number("DECOMPRESSED"), "decompressedBytes"),
          Rows.Column(.number("ENTRIES"), "entries"), Rows.Column("STATE", "state"),
          Rows.Column("FIRST KEY", "firstKey"),
        ], under: heading, style: style)
  }

  mutating func add(
    _ place: TableFile.Place, of table: TableFile, to output: inout some TextOutputStream
  ) {
    var (count, first): (Int, [UInt8]?) = (0, nil)
    do throws(TableFile.Fault) {
      let block = try table.block(at: place)
      var entries = TableFile.Entries(of: block)
      while let entry = try entries.next() {
        (count, first) = (count + 1, first ?? entry.key)
        note(entry)
        guard listsEntries else { continue }
        rows.add(
          [.number(place.offset), .sequence(entry.sequence)]
            + changeCells(
              valueBytes: entry.isRemoval ? nil : entry.value.count, entry.key, inStore: isStore,
              style),
          to: &output)
      }
      guard !listsEntries else { return }
      let key = first.map { Rows.Cell.text(style.text(ofDatabaseKey: $0, inStore: isStore)) }
      rows.add(
        [
          .number(place.offset), .bytes(place.count), .bytes(block.bytes.count), .number(count),
          .text("whole"), key ?? .none,
        ], to: &output)
    } catch {
      outcome.add(error)
      let message = Rows.Cell.text(error.message)
      rows.add(
        listsEntries
          ? [.number(place.offset), .none, message, .none, .none]
          : [.number(place.offset), .bytes(place.count), .none, .none, message, .none],
        tint: .bad, to: &output)
    }
  }

  private mutating func note(_ entry: TableFile.Entry) {
    if entry.isRemoval { removals += 1 } else { puts += 1 }
    let known = sequences ?? entry.sequence...entry.sequence
    sequences =
      min(known.lowerBound, entry.sequence)...max(known.upperBound, entry.sequence)
  }

  func writeSummary(
    of table: TableFile, _ byteCount: Int, to output: inout some TextOutputStream
  ) {
    guard !style.isQuiet else { return }
    output.write("\nsize       \(Amount.bytes(byteCount))\n")
    let changes = "\(Amount.text(puts)) puts, \(Amount.text(removals)) removals"
    output.write("entries    \(changes), in \(Amount.text(table.blocks.count)) blocks\n")
    if let sequences {
      output.write("sequences  \(sequences.lowerBound) to \(sequences.upperBound)\n")
    }
    let size = table.filter.map { ", \(Amount.bytes($0.count))" } ?? ""
    let policy = table.filterPolicy.map { $0.escapedForTerminal + size }
    let fault = table.filterFault.map { "damaged, \($0)" }
    output.write("filter     \(fault ?? policy ?? "none")\n")
  }
}
