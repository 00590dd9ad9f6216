import Testing

@testable import Larder

/// A suite that compares direct coding with coding through `Codable`.
protocol RouteComparison {}

extension RouteComparison {
  func bytes<T>(_ value: T, _ encode: (T, inout ByteBuffer) throws -> Void) throws -> [UInt8] {
    var buffer = ByteBuffer()
    try encode(value, &buffer)
    return Array(buffer)
  }

  func byCodable(_ value: some Encodable) throws -> [UInt8] {
    try bytes(value) { try Binary.encode($0, into: &$1) }
  }

  func directly<T: DirectCoding>(_ value: T, _ route: DirectRoute<T>) throws -> [UInt8] {
    try bytes(value) { try route.encode($0, into: &$1) }
  }

  func directly<T: DirectCoding>(_ values: [T], _ route: DirectRoute<T>) throws -> [UInt8] {
    try bytes(values) { try route.encode($0, into: &$1) }
  }

  func decode<T: Decodable>(_ type: T.Type, _ bytes: [UInt8]) throws -> T {
    try Binary.decode(T.self, from: bytes.span.bytes, parts: DirectParts.self)
  }

  func result<T>(_ body: () throws -> T) -> (value: T?, error: String?) {
    do { return (try body(), nil) } catch { return (nil, "\(error)") }
  }

  /// The result or the error, as text.
  func outcome(_ body: () throws -> some Any) -> String {
    do { return "\(try body())" } catch { return "\(error)" }
  }

  /// Expects that no function of `Codable` is called, in both directions, once the types of a value
  /// are known.
  func expectNoCodable<Value: Codable & Equatable & Sendable>(
    _ value: Value, at place: SourceLocation
  ) throws {
    let coder = Coder<Value>.binary
    let calls = Calls()
    try Observed.$calls.withValue(calls) {
      // The first value of a type is compared with that of Codable.
      _ = try bytes(value) { try coder.encode($0, &$1) }
      let learning = calls.count
      let direct = try bytes(value) { try coder.encode($0, &$1) }
      #expect(try coder.decode(direct.span.bytes) == value, sourceLocation: place)
      #expect(calls.count == learning, sourceLocation: place)
      let other = try byCodable(value)
      #expect(calls.count > learning, sourceLocation: place)
      let encoding = calls.count
      #expect(try coder.decode(other.span.bytes) == value, sourceLocation: place)
      #expect(calls.count == encoding, sourceLocation: place)
    }
  }
}
