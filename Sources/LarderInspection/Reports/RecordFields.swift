import Foundation
import Larder

extension FoundRecord {
  /// The columns of ``cells(at:style:)``, which tables do not have.
  static let columns =
    ["cache", "key", "state"].map { Report.Column(nil, $0) }
    + ["storedBytes", "fault"].map(Report.Column.json) + fieldNames.map { Report.Column(nil, $0) }

  private static let fieldNames = [
    "payloadBytes", "payloadSchemaVersion", "coder", "savedAt", "savedAtBits", "ageSeconds",
    "expiresAt", "secondsLeft", "sequence",
  ]

  /// The cells of the fields of a record that cannot be read.
  static var absentFields: [Report.Cell] { fieldNames.map { _ in .absent } }

  /// The record's fields, without the payload.
  func cells(at now: Date, style: Style) -> [Report.Cell] {
    let start: [Report.Cell] = [
      .text(cache.label), .text(style.text(of: key, in: cache)), .text(state.rawValue),
      .number(storedBytes),
    ]
    guard case .success(let record) = content else {
      return start + [problem.map(Report.Cell.text) ?? .none] + Self.absentFields
    }
    let expiry = expiry(of: record)
    let left = expiry.map { Report.Cell.span($0.timeIntervalSince(now)) }
    let fields: [Report.Cell] = [
      .absent, .number(record.payload.count), .sequence(UInt64(record.schemaVersion)),
      .computed { coderName(record.coder) }, .moment(record.savedAt, relativeTo: now),
      .computed { Moment.bits(record.savedAt) }, .span(now.timeIntervalSince(record.savedAt)),
      .moment(expiry, relativeTo: now), left ?? .none, .sequence(record.sequence),
    ]
    return start + fields
  }

  /// The time until the record expires, for tables.
  func timeLeft(of record: Record, at now: Date) -> Report.Cell {
    guard state != .expired else { return .none }
    guard let expiry = expiry(of: record) else { return .moment(nil, relativeTo: now) }
    return .span(expiry.timeIntervalSince(now))
  }
}
