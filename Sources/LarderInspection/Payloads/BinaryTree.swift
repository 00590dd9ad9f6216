import Foundation
import LarderCoding

/// Converts payloads of the binary coder to similar JSON.
///
/// Dates become ISO 8601 strings, and data `0x` and hex. Members keep their order.
enum BinaryTree {
  /// The value in `bytes`; nil if they are malformed.
  static func read(_ bytes: [UInt8]) -> JSONValue? { Binary.read(bytes.span.bytes).map(json) }

  private static func json(_ value: BinaryValue) -> JSONValue {
    switch value {
    case .null: .null
    case .bool(let truth): .bool(truth)
    case .integer(let number): .integer(number)
    case .large(let number): .integer(number)
    case .float(let number): number.isFinite ? .number("\(number)") : .string("\(number)")
    case .double(let number): number.isFinite ? .number("\(number)") : .string("\(number)")
    case .date(let date):
      .string(Moment.text(date) ?? "\(date.timeIntervalSinceReferenceDate) s since 2001")
    case .uuid(let uuid): .string(uuid.uuidString)
    case .string(let text), .url(let text): .string(text)
    case .data(let data): .string(KeyForm.hex(data))
    case .list(let elements): .array(elements.map(json))
    case .fields(let fields): .object(fields.map { ($0.name, json($0.value)) })
    }
  }
}
