import Foundation
import Larder

extension FoundRecord {
  /// What is known of the record but for its payload, for programs.
  func jsonFields(at now: Date, style: Style) -> [(name: String, value: JSONValue)] {
    var fields: [(name: String, value: JSONValue)] = [
      ("cache", .string(cache.label)), ("key", .string(style.text(of: key, in: cache))),
      ("state", .string(state.rawValue)), ("storedBytes", .integer(storedBytes)),
    ]
    guard case .success(let record) = content else {
      return fields + [("fault", .optional(fault))]
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

  /// How old it is, for people.
  func age(of record: Record, at now: Date) -> String {
    Moment.text(ofSpan: now.timeIntervalSince(record.savedAt))
  }

  /// How long until it has expired, for people.
  func timeLeft(of record: Record, at now: Date) -> String {
    guard state != .expired else { return "-" }
    guard let expiry = expiry(of: record) else { return "unlimited" }
    return Moment.text(ofSpan: expiry.timeIntervalSince(now))
  }
}
