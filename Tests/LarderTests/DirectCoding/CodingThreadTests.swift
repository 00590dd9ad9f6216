import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import Specimens

/// Threads encode and decode values of many types at once.
///
/// `make proof PART=threads` runs the test with the thread sanitizer.
@Suite struct CodingThreadTests {
  /// What one thread does with one type: it encodes a random value, and decodes the payload.
  private typealias Exchange = @Sendable (inout SplitMix64) throws -> Bool

  /// By direct coding, with a coder that all threads share, and through `Codable`.
  private static func exchange<T: DirectCoding & RandomModel>(_ type: T.Type) -> Exchange {
    let (one, list) = (Coder<T>.binary, Coder<[T]>.binary)
    return { random in
      let (value, values) = (T(&random), (0..<3).map { _ in T(&random) })
      var buffer = ByteBuffer()
      try one.encode(value, &buffer)
      let direct = Array(buffer)
      buffer.truncate(to: 0)
      try list.encode(values, &buffer)
      let directList = Array(buffer)
      buffer.truncate(to: 0)
      try Binary.encode(value, into: &buffer)
      return try isSame(one.decode(direct.span.bytes), value)
        && isSame(Binary.decode(T.self, from: direct.span.bytes), value)
        && isSame(one.decode(Array(buffer).span.bytes), value)
        && isSame(list.decode(directList.span.bytes), values)
    }
  }

  /// A value of many types, of which some cannot be streamed.
  private static let things: Exchange = { random in
    let thing = random.thing(depth: 3)
    var buffer = ByteBuffer()
    try Binary.encode(thing, into: &buffer)
    return try Binary.decode(Thing.self, from: Array(buffer).span.bytes) == thing
  }

  private static func exchanges() -> [Exchange] {
    // Generic types of this test only, which the threads use for the first time together.
    let types: [any (DirectCoding & RandomModel).Type] =
      Models.all + [
        Models.Pair<[Models.Leaf], Models.Tree>.self,
        Models.Pair<Models.Pair<Models.Leaf, String>, [Models.Nest]>.self,
      ]
    return types.map { exchange($0) } + [things, things, things]
  }

  @Test(
    "Eight threads encode and decode different types at once.", arguments: [testSeed(), 1])
  func threads(seed: UInt64) {
    let failures = Mutex<[String]>([])
    for round in 0..<(3 * proofFactor) {
      let exchanges = Self.exchanges()
      onThreads(8) { thread in
        var random = SplitMix64(seed: seed &+ UInt64(round * 8 + thread))
        for step in 0..<60 {
          do {
            let exchange = exchanges[(thread + step) % exchanges.count]
            if try exchange(&random) { continue }
            failures.withLock { $0.append("a wrong value, seed \(seed), \(thread), \(step)") }
          } catch {
            failures.withLock { $0.append("\(error), seed \(seed), \(thread), \(step)") }
          }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
  }
}
