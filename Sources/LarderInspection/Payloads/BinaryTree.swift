import Foundation
import Larder

/// How the conversion of a payload to JSON writes dates.
enum DateForm {
  /// As ISO 8601 strings, for people.
  case text
  /// As the JSON coder does: in seconds since 2001.
  case coded

  func json(_ date: Date) -> JSONValue {
    let seconds = date.timeIntervalSinceReferenceDate
    return switch self {
    case .text: .string(Moment.text(date) ?? "\(seconds) s since 2001")
    case .coded: .real(seconds)
    }
  }
}

/// Converts payloads of the binary coder to similar JSON.
///
/// Data becomes `0x` and hex. Members keep their order.
enum BinaryTree {
  /// The value in `bytes`; nil if they are malformed.
  static func read(_ bytes: [UInt8], dates: DateForm = .text) -> JSONValue? {
    Binary.read(bytes.span.bytes).map { json($0, dates) }
  }

  private static func json(_ value: BinaryValue, _ dates: DateForm) -> JSONValue {
    switch value {
    case .null: .null
    case .bool(let truth): .bool(truth)
    case .integer(let number): .integer(number)
    case .large(let number): .integer(number)
    case .float(let number): number.isFinite ? .number("\(number)") : .string("\(number)")
    case .double(let number): number.isFinite ? .number("\(number)") : .string("\(number)")
    case .date(let date): dates.json(date)
    case .uuid(let uuid): .string(uuid.uuidString)
    case .string(let text), .url(let text): .string(text)
    case .data(let data): .string(KeyForm.hex(data))
    case .list(let elements): .array(elements.map { json($0, dates) })
    case .fields(let fields): .object(fields.map { ($0.name, json($0.value, dates)) })
    }
  }
}
