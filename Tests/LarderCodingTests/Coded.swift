import Foundation
@testable import Larder
import Testing

@testable import Specimens

func encoded(_ value: some Encodable) throws -> [UInt8] {
  var bytes = ByteBuffer()
  try Binary.encode(value, into: &bytes)
  return Array(bytes)
}

func encodedByTree(_ value: some Encodable) throws -> [UInt8] {
  var bytes = ByteBuffer()
  try Binary.encodeByTree(value, into: &bytes)
  return Array(bytes)
}

func decoded<T: Decodable>(_ type: T.Type = T.self, from bytes: [UInt8]) throws -> T {
  try Binary.decode(type, from: bytes.span.bytes)
}

/// Expects that a value round-trips, and that JSON's result is equal if JSON can encode it.
func expectRoundTrip<T: Codable & Equatable>(
  _ value: T, _ comment: Comment? = nil, at place: SourceLocation = #_sourceLocation
) throws {
  let bytes = try encoded(value)
  #expect(try decoded(T.self, from: bytes) == value, comment, sourceLocation: place)
  #expect(
    Binary.read(bytes.span.bytes) != nil, "not readable without its type", sourceLocation: place)
  let byTree = try encodedByTree(value)
  #expect(try decoded(T.self, from: byTree) == value, "by tree", sourceLocation: place)
  #expect(try jsonRoundTrip(value) ?? value == value, comment, sourceLocation: place)
}

/// A value encoded and decoded by JSON; nil if JSON cannot encode it.
private func jsonRoundTrip<T: Codable>(_ value: T) throws -> T? {
  do {
    return try JSONDecoder().decode(T.self, from: try JSONEncoder().encode(value))
  } catch is EncodingError {
    return nil
  }
}

/// The path and the kind of a decoding error, as text.
func decodingFailure<T: Decodable>(_ type: T.Type, from bytes: [UInt8]) -> String {
  do {
    return "decoded \(try decoded(type, from: bytes))"
  } catch let error as DecodingError {
    return describe(error)
  } catch {
    return "\(error)"
  }
}

/// The path and the kind of JSON's decoding error, which is the reference for the others.
func jsonDecodingFailure<T: Decodable>(_ type: T.Type, from json: Data) -> String {
  do {
    return "decoded \(try JSONDecoder().decode(type, from: json))"
  } catch let error as DecodingError {
    return describe(error)
  } catch {
    return "\(error)"
  }
}

private func describe(_ error: DecodingError) -> String {
  func path(_ context: DecodingError.Context) -> String {
    context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
      .joined(separator: ".")
  }
  switch error {
  case .keyNotFound(let key, let context): return "no \(key.stringValue) at [\(path(context))]"
  case .valueNotFound(let type, let context): return "null for \(type) at [\(path(context))]"
  case .typeMismatch(let type, let context): return "not \(type) at [\(path(context))]"
  case .dataCorrupted(let context): return "corrupted at [\(path(context))]"
  @unknown default: return "unknown"
  }
}

/// Foundation has a type of this name, too.
typealias Expression = Specimens.Expression
