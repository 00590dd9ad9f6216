import Foundation
import Larder

// `Scripts/fuzz` and the digest of payloads compile this file, too.

/// Whether two values are equal, or have the same bits: a NaN is not equal to itself.
func isSame<T: Encodable & Equatable>(_ one: T, _ other: T) -> Bool {
  if one == other { return true }
  do {
    return text(of: try written(by: one)) == text(of: try written(by: other))
  } catch {
    return false
  }
}

func written(_ encode: (inout ByteBuffer) throws -> Void) rethrows -> [UInt8] {
  var buffer = ByteBuffer()
  try encode(&buffer)
  return Array(buffer)
}

func written(by value: some Encodable) throws -> [UInt8] {
  try written { try Binary.encode(value, into: &$0) }
}

/// A text that is equal for payloads whose values have the same bits, in any order of maps.
private func text(of payload: [UInt8]) -> String {
  Binary.read(payload.span.bytes).map(text(of:)) ?? "nothing"
}

/// A text that is equal only for equal values.
func text(of value: BinaryValue) -> String {
  switch value {
  case .float(let number): "float \(number.bitPattern)"
  case .double(let number): "double \(number.bitPattern)"
  case .date(let date): "date \(date.timeIntervalSinceReferenceDate.bitPattern)"
  case .data(let data): "data \(Array(data))"
  case .string(let text): "string \(Array(text.utf8))"
  case .url(let text): "url \(Array(text.utf8))"
  case .list(let elements): "[\(elements.map(text(of:)).joined(separator: ", "))]"
  case .fields(let fields):
    "{\(fields.map { "\(Array($0.name.utf8)): \(text(of: $0.value))" }.sorted())}"
  case .null, .bool, .integer, .large, .uuid: "\(value)"
  }
}
