import Foundation
import Larder

/// Encoding and decoding of payloads with Larder's binary coder.
///
/// The values differ from one operation to the next, so that caching the last one gains nothing.
enum CodingSuite {
  static let variants = 64

  static func operations(_ scale: Scale) -> Int { max(variants, scale.visited / 400) }

  static func feedItems(_ random: inout WorkloadRandom) throws -> PayloadsOf<[FeedItem]> {
    try PayloadsOf("100 feed items") { (0..<100).map { _ in FeedItem(&random) } }
  }
}

/// Encodes the same values by a cache's coder and as JSON.
struct PayloadsOf<Value: Codable & Equatable & Sendable> {
  let name: String
  let values: [Value]
  let binary: [[UInt8]]
  private let coder = Coder<Value>.binary
  private let json: [Data]

  /// Makes the values and encodes them; throws ``WrongResults`` if one decodes to another value.
  init(_ name: String, make: () -> Value) throws {
    self.name = name
    values = (0..<CodingSuite.variants).map { _ in make() }
    binary = try values.map { [coder] value in
      var buffer = ByteBuffer()
      try coder.encode(value, &buffer)
      return Array(buffer)
    }
    json = try values.map { try JSONEncoder().encode($0) }
    for (value, bytes) in zip(values, binary) where try coder.decode(bytes.span.bytes) != value {
      throw WrongResults(description: "\(name) decoded to another value")
    }
  }

  // MARK: - Contests

  func directEncoding(_ count: Int, goal: Double? = nil) -> Contest {
    Contest(
      name: "encode \(name), directly", operations: count, goal: goal,
      a: encode(count), b: encodeJSON(count))
  }

  func directDecoding(_ count: Int, goal: Double? = nil) -> Contest {
    Contest(
      name: "decode \(name), directly", operations: count, goal: goal,
      a: decode(count), b: decodeJSON(count))
  }

  // MARK: - Runs

  /// Encodes as a cache does: directly what is ``DirectCoding``, and the rest by `Codable`.
  func encode(_ count: Int) -> Contest.Run {
    encoding(count) { try coder.encode(values[$0], &$1) }
  }

  /// Decodes as a cache does.
  func decode(_ count: Int) -> Contest.Run {
    decoding(count) { try Self.decode(binary[$0], coder) }
  }

  private static func decode(_ bytes: [UInt8], _ coder: Coder<Value>) throws -> Value {
    try coder.decode(bytes.span.bytes)
  }

  func encodeJSON(_ count: Int) -> Contest.Run {
    run(count) { try JSONEncoder().encode(values[$0]).count >= json[$0].count / 2 }
  }

  func decodeJSON(_ count: Int) -> Contest.Run {
    decoding(count) { try JSONDecoder().decode(Value.self, from: json[$0]) }
  }

  /// Calls `body` with one variant after the other; it returns whether the result is right.
  private func run(_ count: Int, _ body: @escaping (Int) throws -> Bool) -> Contest.Run {
    {
      try timed(expecting: count) {
        var right = 0
        for step in 0..<count where try body(step % CodingSuite.variants) { right += 1 }
        return right
      }
    }
  }

  func encoding(
    _ count: Int, _ body: @escaping (Int, inout ByteBuffer) throws -> Void
  ) -> Contest.Run {
    {
      var buffer = ByteBuffer()
      return try timed(expecting: count) {
        var right = 0
        for step in 0..<count {
          let variant = step % CodingSuite.variants
          buffer.truncate(to: 0)
          try body(variant, &buffer)
          // `Codable` and `DirectCoding` may write different headers before a value.
          if abs(buffer.count - binary[variant].count) <= 2 * 100 { right += 1 }
        }
        return right
      }
    }
  }

  func decoding(_ count: Int, _ body: @escaping (Int) throws -> Value) -> Contest.Run {
    run(count) { variant in
      let value = try body(variant)
      return withExtendedLifetime(value) { true }
    }
  }
}
