// The lines of an export, each a JSON object:
//
//   {"larderExport": 1, "store": PATH, "exportedAt": TIME}
//   {"cache": NAME, "registration": {...}}       one for each cache, before its records
//   {"cache": NAME, "key": KEY, ...}             one for each record
//   {"records": COUNT, "leftOut": COUNT}         the last one
//
// The members of a record's line are below. A date is given by its text and by its bits, which the
// text may round; the bits count. Keys are written in the form `auto`, and bytes in Base64.

import Foundation
import Larder

/// The version of the lines.
let exportVersion = 1

/// The names of the members of a record's line.
enum ExportMember {
  static let cache = "cache"
  static let registration = "registration"
  static let key = "key"
  static let savedAt = "savedAt"
  /// 64 bits in hex.
  static let savedAtBits = "savedAtBits"
  /// Null for never; without it, the lifetime decides.
  static let expiresAtBits = "expiresAtBits"
  /// The name of the coder.
  static let coder = "coder"
  static let schemaVersion = "payloadSchemaVersion"
  /// The entry's own lifetime: two numbers of seconds, null for unlimited.
  static let lifetime = "lifetime"
  static let fresh = "fresh"
  static let stale = "stale"
  /// The date at which a sliding entry's fresh time ends at the latest, 64 bits in hex.
  static let slidesUntilBits = "slidesUntilBits"
  static let validator = "validator"
  static let tags = "tags"
  static let payload = "payload"

  /// The members that a record's line may have.
  static let ofRecord: Set<String> = [
    cache, key, savedAt, savedAtBits, expiresAtBits, coder, schemaVersion, lifetime,
    slidesUntilBits, validator,
    tags, payload,
  ]
  /// The members of a cache's line.
  static let ofCache: Set<String> = [cache, registration]
  /// The members that the first line may have.
  static let ofHeading: Set<String> = [version, "store", "exportedAt"]
  /// The members that the last line may have.
  static let ofEnd: Set<String> = [records, leftOut]

  static let version = "larderExport"
  static let records = "records"
  static let leftOut = "leftOut"
}

extension FoundRecord {
  /// Whether a later version of this library wrote the record, or registered its cache.
  var isOfLaterVersion: Bool {
    if let coder = cache.registration?.coder, PayloadFormat(rawValue: coder) == nil { return true }
    return switch content {
    case .success(let record): PayloadFormat(rawValue: record.coder) == nil
    case .failure(let fault): fault != .damaged
    }
  }

  /// The record's line in an export.
  ///
  /// Nil if it cannot be read, if no cache owns it, or if a later version wrote it.
  var exportLine: JSONValue? {
    guard case .success(let record) = content, let payload, cache.registration != nil,
      let format = PayloadFormat(rawValue: record.coder), !isOfLaterVersion
    else { return nil }
    var members: [(name: String, value: JSONValue)] = [
      (ExportMember.cache, .string(cache.name ?? "")),
      (ExportMember.key, .string(KeyForm.auto.text(of: key, kind: cache.keyKind))),
      (ExportMember.savedAt, .optional(Moment.text(record.savedAt))),
      (ExportMember.savedAtBits, .string(Moment.bits(record.savedAt))),
      (ExportMember.expiresAtBits, .optional(record.expiresAt.map(Moment.bits))),
      (ExportMember.coder, .string("\(format)")),
      (ExportMember.schemaVersion, .integer(record.schemaVersion)),
    ]
    if let lifetime = record.ownLifetime {
      // `real` writes null for infinity.
      let limits = JSONValue.object([
        (ExportMember.fresh, .real(lifetime.fresh)), (ExportMember.stale, .real(lifetime.stale)),
      ])
      members.append((ExportMember.lifetime, limits))
    }
    if let end = record.slidesUntil {
      members.append((ExportMember.slidesUntilBits, .string(Moment.bits(end))))
    }
    if let validator { members.append((ExportMember.validator, .base64(validator))) }
    if let tags {
      members.append((ExportMember.tags, .array(tags.texts.map(JSONValue.string))))
    }
    members.append((ExportMember.payload, .base64(payload)))
    return .object(members)
  }
}

extension JSONValue {
  static func base64(_ bytes: [UInt8]) -> JSONValue {
    .string(Data(bytes).base64EncodedString())
  }

  /// The bytes that ``base64(_:)`` writes as `text`; nil for any other text.
  ///
  /// Foundation's decoder takes `====` for a byte, and ignores bits behind the last one.
  static func bytes(ofBase64 text: String) -> [UInt8]? {
    guard let bytes = Data(base64Encoded: text), bytes.base64EncodedString() == text else {
      return nil
    }
    return Array(bytes)
  }
}
