import Foundation
package import LarderBytes

/// How a payload's bytes are to be read.
///
/// The raw value is the coder byte of a record.
///
/// These numbers are on users' disks: never change one, never use one again.
package enum PayloadFormat: UInt8, Sendable, CaseIterable {
  /// Larder's own, see `Binary`.
  case binary = 1
  case json = 2
  case propertyList = 3
  /// The payload is the value: bytes, as they are.
  case bytes = 4
}

extension PayloadFormat {
  /// Appends the encoded value to `buffer`.
  ///
  /// Only for the formats of `Encodable` values. Lists and objects that are more than 128 deep
  /// within each other are an `EncodingError`. Foundation's encoders would end the process, so that
  /// a type is asked to encode itself twice: to be counted, and to be written.
  package func encode<V: Encodable>(_ value: V, into buffer: inout ByteBuffer) throws {
    switch self {
    case .binary: try Binary.encode(value, into: &buffer)
    case .json:
      try DepthCounter.check(value)
      try JSONEncoder().encode(value).withUnsafeBytes { buffer.append($0) }
    case .propertyList:
      try DepthCounter.check(value)
      let encoder = PropertyListEncoder()
      encoder.outputFormat = .binary
      try encoder.encode(value).withUnsafeBytes { buffer.append($0) }
    case .bytes: throw UnsuitableFormat(format: self)
    }
  }

  /// Decodes a value from `bytes`.
  ///
  /// Only for the formats of `Decodable` values. Lists and objects that are more than 128 deep
  /// within each other are a `DecodingError`.
  package func decode<V: Decodable>(_ type: V.Type, from bytes: RawSpan) throws -> V {
    switch self {
    case .binary: return try Binary.decode(type, from: bytes)
    case .json:
      try bytes.withUnsafeBytes { try DepthScan.checkJSON($0) }
      return try JSONDecoder().decode(type, from: bytes.withUnsafeBytes { Data($0) })
    case .propertyList:
      try bytes.withUnsafeBytes { try DepthScan.checkPropertyList($0) }
      return try PropertyListDecoder().decode(type, from: bytes.withUnsafeBytes { Data($0) })
    case .bytes: throw UnsuitableFormat(format: self)
    }
  }
}

/// Raw bytes were met where a value of a `Codable` type was wanted.
package struct UnsuitableFormat: LocalizedError, CustomStringConvertible {
  let format: PayloadFormat

  package var description: String { "a payload of format \(format) holds no Codable value" }
  package var errorDescription: String? { description }
}
