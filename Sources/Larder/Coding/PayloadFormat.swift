import Foundation

/// The encoding of a payload.
///
/// The raw value is the coder byte of a record.
///
/// The raw values are on users' disks: never change or reuse one.
package enum PayloadFormat: UInt8, Sendable, CaseIterable {
  /// Larder's own encoding, see `Binary`.
  case binary = 1
  case json = 2
  case propertyList = 3
  /// The value itself, which is raw bytes.
  case bytes = 4
}

extension PayloadFormat {
  /// Appends the encoded value to `buffer`.
  ///
  /// Throws ``UnsuitableFormat`` for ``bytes``, and an `EncodingError` if lists and objects are
  /// nested more than 128 levels deep, or if ``json`` has a `Decimal` that is not a number.
  /// Foundation's encoders would crash on a deeper value, and write such a number as invalid JSON.
  /// So for their formats the type encodes itself twice: once to be checked, once to be written.
  package func encode<V: Encodable>(_ value: V, into buffer: inout ByteBuffer) throws {
    switch self {
    case .binary: try Binary.encode(value, into: &buffer)
    case .json:
      try DepthCounter.check(value, allowsNaN: false)
      try JSONEncoder().encode(value).withUnsafeBytes { buffer.append($0) }
    case .propertyList:
      try DepthCounter.check(value, allowsNaN: true)
      let encoder = PropertyListEncoder()
      encoder.outputFormat = .binary
      try encoder.encode(value).withUnsafeBytes { buffer.append($0) }
    case .bytes: throw UnsuitableFormat(format: self)
    }
  }

  /// Decodes a value from `bytes`.
  ///
  /// Throws ``UnsuitableFormat`` for ``bytes``, and a `DecodingError` if lists and objects are
  /// nested more than 128 levels deep.
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

/// The error for a `Codable` value in a format that holds only raw bytes.
package struct UnsuitableFormat: LocalizedError, CustomStringConvertible {
  let format: PayloadFormat

  package var description: String { "a payload of format \(format) cannot hold a Codable value" }
  package var errorDescription: String? { description }
}
