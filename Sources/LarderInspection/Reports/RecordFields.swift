import Foundation
import Larder

extension FoundRecord {
  /// The record's fields as JSON members, without the payload.
  func jsonFields(at now: Date, style: Style) -> [(name: String, value: JSONValue)] {
    var fields: [(name: String, value: JSONValue)] = [
      ("cache", .string(cache.label)), ("key", .string(style.text(of: key, in: cache))),
      ("state", .string(state.rawValue)), ("storedBytes", .integer(storedBytes)),
    ]
    guard case .success(let record) = content else {
      return fields + [("fault", .optional(problem))]
    }
    let expiry = expiry(of: record)
    fields += [
      ("payloadBytes", .integer(record.payload.count)),
      ("payloadSchemaVersion", .integer(record.schemaVersion)),
      ("coder", .string(coderName(record.coder))),
      ("savedAt", .optional(Moment.text(record.savedAt))),
      ("savedAtBits", .string(Moment.bits(record.savedAt))),
      ("ageSeconds", .real(now.timeIntervalSince(record.savedAt))),
      ("expiresAt", .optional(expiry.flatMap(Moment.text))),
      ("secondsLeft", expiry.map { .real($0.timeIntervalSince(now)) } ?? .null),
      ("sequence", .integer(record.sequence)),
    ]
    return fields
  }

  /// The record's age, for tables.
  func age(of record: Record, at now: Date) -> String {
    Moment.text(ofSpan: now.timeIntervalSince(record.savedAt))
  }

  /// The time until the record expires, for tables.
  func timeLeft(of record: Record, at now: Date) -> String {
    guard state != .expired else { return "-" }
    guard let expiry = expiry(of: record) else { return "unlimited" }
    return Moment.text(ofSpan: expiry.timeIntervalSince(now))
  }
}
