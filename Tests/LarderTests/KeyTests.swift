import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Keys decode to what was encoded, and sort like their bytes.
@Suite struct KeyTests {
  @Test("Every kind of key decodes to what was encoded.")
  func roundTrip() throws {
    try expectRoundTrip([
      "", "a", "a\0b", "\u{0}", "\u{DC}n\u{EF}\u{1F600}", "e\u{301}",
      String(repeating: "x", count: 65_536),
    ])
    try expectRoundTrip([0, 1, -1, .max, .min, 255, 256])
    try expectRoundTrip([UUID(), UUID()])
    try expectRoundTrip(
      ["https://example.org/A%20b/?q=1#f", "x/../y"].compactMap { URL(string: $0) })
    try expectRoundTrip([Data(), Data([0, 255, 0])])
    try expectRoundTrip([[], [0], [255, 255]] as [[UInt8]])
    try expectRoundTrip([Wrapped(rawValue: "w")])
  }

  @Test("Encoded integers sort like the numbers.")
  func integerOrder() {
    var random = SplitMix64(seed: 3)
    var numbers = (0..<1000).map { _ in Int.random(in: .min ... .max, using: &random) }
    numbers += [.min, -1, 0, 1, .max, -256, 255, 256]
    let byBytes = numbers.sorted { $0.encoded().lexicographicallyPrecedes($1.encoded()) }
    #expect(byBytes == numbers.sorted())
  }

  @Test("Equal strings with different bytes are different keys.")
  func equalStrings() {
    let composed = "caf\u{E9}"
    let decomposed = "cafe\u{301}"
    #expect(composed == decomposed)
    #expect(composed.encoded() != decomposed.encoded())
  }

  @Test("Bytes that are not a key of the type are refused.")
  func invalidBytes() {
    #expect(key(String.self, from: [0xFF]) == nil)
    #expect(key(Int.self, from: [1, 2, 3]) == nil)
    #expect(key(UUID.self, from: [1]) == nil)
    #expect(key(Letter.self, from: Array("z".utf8)) == nil)
    #expect(key(Letter.self, from: Array("a".utf8)) == .a)
  }

  @Test("A key is described according to its kind.")
  func descriptions() {
    #expect(describe("a b".encoded(), as: .text) == "a b")
    #expect(describe((-7).encoded(), as: .integer) == "-7")
    #expect(describe([1, 255], as: .bytes) == "0x01ff")
    #expect(describe([0xFF], as: .text) == "0xff")
  }

  // Spans do not escape, and the macros of a test would let them.
  private func key<Key: CacheKey>(_ type: Key.Type, from bytes: [UInt8]) -> Key? {
    Key(encodedKey: bytes.span.bytes)
  }

  private func describe(_ bytes: [UInt8], as kind: KeyKind) -> String {
    kind.describe(bytes.span.bytes)
  }

  @Test("Varints round-trip, and malformed ones are refused.")
  func varints() {
    var numbers: [UInt64] = [0, 1, 127, 128, 16_383, 16_384, .max, .max - 1]
    var random = SplitMix64(seed: 5)
    numbers += (0..<1000).map { _ in random.next() >> UInt64.random(in: 0...63, using: &random) }
    for number in numbers {
      var bytes: [UInt8] = [9]
      appendVarint(number, to: &bytes)
      var offset = 1
      let read = readVarint(bytes.span.bytes, at: &offset)
      #expect(read == number)
      #expect(offset == bytes.count)
    }
    for malformed in [[], [0x80], [0x80, 0x00], Array(repeating: 0xFF, count: 10)] as [[UInt8]] {
      var offset = 0
      let read = readVarint(malformed.span.bytes, at: &offset)
      #expect(read == nil)
      #expect(offset == 0)
    }
  }

  private func expectRoundTrip<Key: CacheKey & Equatable>(_ keys: [Key]) throws {
    for key in keys {
      let bytes = key.encoded()
      let again = Key(encodedKey: bytes.span.bytes)
      #expect(again == key)
      #expect(again?.encoded() == bytes)
    }
  }
}

struct Wrapped: RawRepresentable, CacheKey, Equatable { var rawValue: String }

enum Letter: String, CacheKey { case a, b }
