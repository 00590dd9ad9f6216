import Foundation
import Larder

/// A payload decoded to generic values, which can be encoded again.
enum UntypedPayload {
  case binary(BinaryValue)
  case json(Any)

  /// Whether payloads of a coder can be decoded to generic values.
  static func canRead(_ coder: UInt8) -> Bool {
    [PayloadFormat.binary.rawValue, PayloadFormat.json.rawValue].contains(coder)
  }

  /// Decodes a payload; nil if it is malformed or the coder is not supported.
  init?(_ payload: [UInt8], coder: UInt8) {
    switch PayloadFormat(rawValue: coder) {
    case .binary:
      guard let value = Binary.read(payload.span.bytes) else { return nil }
      self = .binary(value)
    case .json:
      do {
        self = .json(
          try JSONSerialization.jsonObject(with: Data(payload), options: .fragmentsAllowed))
      } catch {
        // Payloads that are not JSON are not measured.
        return nil
      }
    default: return nil
    }
  }

  /// Encodes the payload with its coder and returns its size.
  func encode(into buffer: inout ByteBuffer) throws -> Int {
    buffer.truncate(to: 0)
    switch self {
    case .binary(let value):
      try Binary.encode(Untyped(value: value), into: &buffer)
      return buffer.count
    case .json(let value):
      return try JSONSerialization.data(withJSONObject: value, options: .fragmentsAllowed).count
    }
  }
}

/// A generic value that encodes itself through `Codable`.
private struct Untyped: Encodable {
  let value: BinaryValue

  func encode(to encoder: any Encoder) throws {
    switch value {
    case .list(let elements):
      var container = encoder.unkeyedContainer()
      for element in elements { try container.encode(Untyped(value: element)) }
    case .fields(let fields):
      var container = encoder.container(keyedBy: Name.self)
      for field in fields {
        try container.encode(Untyped(value: field.value), forKey: Name(stringValue: field.name))
      }
    default: try encodeSingle(to: encoder)
    }
  }

  private func encodeSingle(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch value {
    case .null, .list, .fields: try container.encodeNil()
    case .bool(let truth): try container.encode(truth)
    // The original width is unknown; nearly all numbers fit into 64 bits.
    case .integer(let number):
      if let small = Int64(exactly: number) {
        try container.encode(small)
      } else {
        try container.encode(number)
      }
    case .large(let number): try container.encode(number)
    case .float(let number): try container.encode(number)
    case .double(let number): try container.encode(number)
    case .date(let date): try container.encode(date)
    case .uuid(let uuid): try container.encode(uuid)
    // A URL is encoded as a string: parsing it would take longer than encoding it.
    case .string(let text), .url(let text): try container.encode(text)
    case .data(let data): try container.encode(data)
    }
  }

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}
