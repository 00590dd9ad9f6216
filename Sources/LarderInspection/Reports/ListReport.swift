import Foundation
import Larder

extension Inspection {
  /// One row for each record of a selection.
  ///
  /// Damage gets a row too, and the list continues after it. The outcome is that of the records
  /// that are listed, and of parts of the files that cannot be read.
  ///
  /// - Complexity: One step and one checksum for each record. Memory for at most 200 rows; in
  ///   another order than by key, for all that are listed.
  package func list(_ selection: Selection, style: Style) -> Report {
    let numbers: [Report.Column] = style.numbers == nil ? [] : [.init(.rowNumber, nil)]
    let table: [Report.Column] =
      numbers + [
        .init("STATE", nil), .init("AGE", nil), .init("LEFT", nil), .init(.number("SIZE"), nil),
        .init(.number("SCHEMA"), nil), .init(.name("CACHE"), nil), .init(.name("KEY"), nil),
      ]
    return Report(
      style: style, title: heading, members: jsonHeading, columns: table + FoundRecord.columns,
      rowsMember: "records", versionsLines: true, isOneLine: true
    ) { [self] add throws(InspectionError) in
      var outcome = damage.isEmpty ? Outcome.fine : .damaged
      var ranking = selection.order == .key ? nil : Ranking(selection)
      var scanned = selection
      if ranking != nil { (scanned.limit, scanned.isReversed) = (nil, false) }
      let end = try forEachItem(in: scanned, keys: style.keys) { item throws(InspectionError) in
        outcome.add(item.state)
        if case .record(let record) = item, ranking != nil {
          ranking?.add(record)
        } else {
          add(row(of: item, style))
        }
        return true
      }
      for record in ranking?.ranked() ?? [] {
        add(row(of: .record(record), style))
      }
      return Report.Ending(outcome: outcome, scan: end)
    }
  }

  private func row(of item: ScanItem, _ style: Style) -> Report.Row {
    var cells = cells(of: item, style)
    if let numbers = style.numbers {
      var number: Int?
      if case .record(let found) = item { number = numbers.number(found, of: path) }
      cells.insert(number.map(Report.Cell.number) ?? .none, at: 0)
    }
    return Report.Row(cells, tint: item.state.tint)
  }

  /// The cells of tables, and behind them the others.
  private func cells(of item: ScanItem, _ style: Style) -> [Report.Cell] {
    let state = Report.Cell.text(item.state.rawValue)
    switch item {
    case .unreadable(let cache, let message):
      let label = cache.map { Report.Cell.text($0.label) } ?? .none
      let cells: [Report.Cell] = [
        state, .none, .none, .none, .none, label, .text("(\(message))"),
        label, .none, state, .absent, .text(message),
      ]
      return cells + FoundRecord.absentFields
    case .record(let found):
      let fields = found.cells(at: now, style: style)
      guard case .success(let record) = found.content else {
        let cells: [Report.Cell] = [state, .none, .none, .none, .none, fields[0], fields[1]]
        return cells + fields
      }
      let cells: [Report.Cell] = [
        state, .span(now.timeIntervalSince(record.savedAt)), found.timeLeft(of: record, at: now),
        .bytes(record.payload.count), .sequence(UInt64(record.schemaVersion)), fields[0], fields[1],
      ]
      return cells + fields
    }
  }
}
