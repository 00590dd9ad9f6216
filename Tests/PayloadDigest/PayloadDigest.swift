import Foundation
import Larder
import LarderTestSupport

// Prints digests of the payloads of random values: `payload-digest [COUNT [SEED]]`.
// `Scripts/payloads` compares those of two commits.

/// Encodes random values, and decodes the payloads.
@main
struct PayloadDigest: ~Copyable {
  /// A decoded value that is another one, or a wrong argument.
  struct Failure: Error, CustomStringConvertible { let description: String }

  private var buffer = ByteBuffer()
  private var random: SplitMix64
  private let count: Int

  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    let numbers = arguments.compactMap { UInt64($0) }
    guard numbers.count == arguments.count, numbers.count <= 2 else {
      throw Failure(description: "usage: payload-digest [COUNT [SEED]]")
    }
    var digest = PayloadDigest(
      random: SplitMix64(seed: numbers.count > 1 ? numbers[1] : 1),
      count: Int(numbers.first ?? 1000))
    // A half of the values are things, the others are models.
    try digest.things(digest.count / 2)
    for type in Models.all { try digest.models(type, digest.count / 2 / Models.all.count) }
  }

  private init(random: SplitMix64, count: Int) { (self.random, self.count) = (random, count) }

  private mutating func things(_ count: Int) throws {
    var sum = Sum()
    for _ in 0..<count {
      let thing = random.thing(depth: 3)
      buffer.truncate(to: 0)
      try Binary.encode(thing, into: &buffer)
      sum.add(buffer)
      guard try Binary.decode(Thing.self, from: Array(buffer).span.bytes) == thing else {
        throw Failure(description: "\(thing) came back as another value")
      }
    }
    print("Thing by Codable: \(sum)")
  }

  private mutating func models<T: DirectCoding & RandomModel>(_ type: T.Type, _ count: Int) throws {
    let coder = Coder<T>.binary
    var (byCodable, directly) = (Sum(), Sum())
    for _ in 0..<count {
      let value = T(&random)
      buffer.truncate(to: 0)
      try Binary.encode(value, into: &buffer)
      byCodable.add(buffer)
      let back = try coder.decode(Array(buffer).span.bytes)
      buffer.truncate(to: 0)
      try coder.encode(value, &buffer)
      directly.add(buffer)
      let other = try Binary.decode(T.self, from: Array(buffer).span.bytes)
      guard isSame(back, value), isSame(other, value) else {
        throw Failure(description: "\(value) came back as \(back) and \(other)")
      }
    }
    print("\(type) by Codable: \(byCodable)")
    print("\(type) directly: \(directly)")
  }
}

/// A digest of payloads, and their number and size.
private struct Sum: CustomStringConvertible {
  private var count = 0
  private var bytes = 0
  // FNV-1a with 64 bits.
  private var hash: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ payload: borrowing ByteBuffer) {
    count += 1
    bytes += payload.count
    payload.withBytes { for byte in $0 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 } }
  }

  var description: String { "\(count) payloads, \(bytes) bytes, \(String(hash, radix: 16))" }
}
