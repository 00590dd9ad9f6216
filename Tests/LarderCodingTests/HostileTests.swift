import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import Specimens

/// Any bytes are decoded or refused, without a trap, a hang or an excessive allocation.
@Suite struct HostileTests {
  /// Makes a payload from a value's bytes and the bytes of its shapes.
  private func payload(_ value: [UInt8], shapes: [UInt8] = [0]) -> [UInt8] {
    var bytes: [UInt8] = [1]
    withUnsafeBytes(of: UInt32(value.count).littleEndian) { bytes += $0 }
    return bytes + value + shapes
  }

  private func isRefused(_ bytes: [UInt8]) -> Bool {
    Targets.tryAll(bytes) == 0 && Binary.read(bytes.span.bytes) == nil
  }

  private func field(_ name: String, _ type: [UInt8]) -> [UInt8] {
    type + [UInt8(name.utf8.count)] + Array(name.utf8)
  }

  private let int = WireKind.int64.rawValue
  private let object = WireKind.object.rawValue
  private let list = WireKind.list.rawValue
  private let tagged = WireKind.tagged.rawValue

  @Test("Payloads made by hand are decoded.")
  func handmade() throws {
    // Valid counterparts of this suite's payloads, which could be refused for another reason.
    let shapes =
      [2, 1] + field("a", [WireKind.bool.rawValue]) + [1] + field("b", [list, object, 0])
    let bytes = payload([object, 1, 2, 0, 0, 0, 1, 0], shapes: shapes)
    struct Inner: Codable, Equatable { var a: Bool }
    #expect(try decoded(from: bytes) == ["b": [Inner(a: true), Inner(a: false)]])
    // An object in another one, without a type or a presence of its own.
    let bare =
      [2, 1] + field("a", [WireKind.bool.rawValue]) + [2] + field("x", [object, 0])
      + field("y", [0x80 | object, 0])
    struct Outer: Codable, Equatable {
      var x: Inner
      var y: Inner?
    }
    #expect(
      try decoded(from: payload([list, object, 1, 2, 0, 0, 0, 1, 0, 0, 1, 1], shapes: bare))
        == [Outer(x: Inner(a: true), y: nil), Outer(x: Inner(a: false), y: Inner(a: true))])
  }

  @Test("Malformed payloads are refused.")
  func malformed() throws {
    #expect(isRefused([]))
    #expect(isRefused([1]))
    #expect(isRefused([1, 0, 0, 0, 0]))
    #expect(isRefused(payload([])))
    #expect(isRefused(payload([WireKind.null.rawValue]).dropLast() + [1]), "a missing shape")
    #expect(isRefused([2] + payload([int, 1, 0, 0, 0, 0, 0, 0, 0]).dropFirst()), "a version")
    #expect(isRefused(payload([int, 1, 0, 0, 0, 0, 0, 0])), "a number cut short")
    #expect(isRefused(payload([23])), "a kind")
    #expect(isRefused(payload([WireKind.bool.rawValue, 2])), "a truth value")
    #expect(isRefused(payload([tagged, WireKind.bool.rawValue, 1])), "tagged in tagged")
    #expect(isRefused(payload([0x80 | WireKind.bool.rawValue, 1, 1])), "optional in tagged")
    #expect(isRefused(payload([object, 0])), "a shape's number")
    let optional = [1, 1] + field("a", [0x80 | WireKind.bool.rawValue])
    #expect(Binary.read(payload([object, 0, 1, 1], shapes: optional).span.bytes) != nil)
    #expect(isRefused(payload([object, 0, 2, 1], shapes: optional)), "a presence")
    #expect(isRefused(payload([WireKind.bool.rawValue, 1]) + [0]), "bytes behind the shapes")
    #expect(isRefused([1, 255, 255, 255, 255, 0, 0]), "a size")
  }

  @Test(
    "Invalid UTF-8 is refused.",
    arguments: [
      [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82], [0x80],
    ] as [[UInt8]])
  func invalidUTF8(text: [UInt8]) {
    let string = [UInt8(text.count)] + text
    #expect(isRefused(payload([WireKind.string.rawValue] + string)))
    #expect(isRefused(payload([WireKind.map.rawValue, 1, 0, 0, 0] + string + [0])))
    #expect(isRefused(payload([object, 0, 1], shapes: [1, 1, WireKind.bool.rawValue] + string)))
  }

  @Test("Duplicate names are refused.")
  func duplicateNames() {
    let twice = field("a", [WireKind.bool.rawValue]) + field("a", [WireKind.bool.rawValue])
    #expect(isRefused(payload([object, 0, 1, 1], shapes: [1, 2] + twice)))
    var many: [UInt8] = []
    for name in "abcdefghija" { many += field(String(name), [WireKind.bool.rawValue]) }
    #expect(
      isRefused(payload([object, 0] + Array(repeating: 1, count: 11), shapes: [1, 11] + many)))
    let entry = [1, UInt8(ascii: "a"), WireKind.bool.rawValue, 1]
    #expect(isRefused(payload([WireKind.map.rawValue, 2, 0, 0, 0] + entry + entry)))
  }

  @Test("Lengths with redundant bytes are refused.")
  func redundantLengths() {
    #expect(isRefused(payload([WireKind.string.rawValue, 0x81, 0x00, 0x61])))
    #expect(isRefused(payload([WireKind.data.rawValue, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01])))
    #expect(isRefused(payload([WireKind.data.rawValue, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00])))
  }

  // MARK: - Bombs

  @Test("Huge counts are refused before anything is allocated.")
  func hugeCounts() {
    for kind in [WireKind.int64, .uint8, .string, .tagged, .double, .list] {
      let type = kind == .list ? [list, list, int] : [list, kind.rawValue]
      #expect(isRefused(payload(type + [255, 255, 255, 255, 0, 0])))
      #expect(isRefused(payload(type + [255, 255, 255, 127] + Array(repeating: 0, count: 64))))
    }
    #expect(isRefused(payload([WireKind.map.rawValue, 255, 255, 255, 255, 0, 0])))
    #expect(
      isRefused(payload([list, WireKind.null.rawValue, 255, 255, 255, 255])),
      "elements without bytes")
    #expect(isRefused(payload([list, 0x80, 1, 0, 0, 0, 0])), "optional elements without bytes")
  }

  @Test("Huge sizes are refused before anything is allocated.")
  func hugeSizes() {
    for kind in [WireKind.string, .data, .url] {
      #expect(isRefused(payload([kind.rawValue, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0])))
      #expect(isRefused(payload([kind.rawValue, 2, 0x61])))
    }
  }

  @Test("Payloads nested too deeply are refused.")
  func deepNesting() throws {
    // Lists of one list, as values and as types.
    for depth in [129, 200, 10_000] {
      var nested: [UInt8] = []
      for _ in 0..<depth { nested += [list, tagged, 1, 0, 0, 0] }
      #expect(isRefused(payload(nested + [WireKind.bool.rawValue, 1])))
      let types = Array(repeating: list, count: depth)
      #expect(isRefused(payload(types + [int] + Array(repeating: 0, count: 4))))
      var maps: [UInt8] = []
      for _ in 0..<depth { maps += [WireKind.map.rawValue, 1, 0, 0, 0, 0] }
      #expect(isRefused(payload(maps + [WireKind.bool.rawValue, 1])))
    }
    var nested: [UInt8] = []
    for _ in 0..<128 { nested += [list, tagged, 1, 0, 0, 0] }
    #expect(Binary.read(payload(nested + [WireKind.bool.rawValue, 1]).span.bytes) != nil)
  }

  /// Each shape has two fields of the shape before it, so the last takes 2^100 steps to skip.
  @Test("Shapes that double in size are refused.")
  func doublingShapes() {
    var shapes = [100, 1] + field("a", [WireKind.bool.rawValue])
    for index in 1..<100 {
      shapes +=
        [2] + field("a", [object, UInt8(index - 1)]) + field("b", [object, UInt8(index - 1)])
    }
    #expect(isRefused(payload([object, 99] + Array(repeating: 0, count: 1000), shapes: shapes)))
  }

  @Test("Shapes that contain themselves are refused.")
  func recursiveShapes() {
    #expect(isRefused(payload([object, 0], shapes: [1, 1] + field("a", [object, 0]))))
    let later = [2, 1] + field("a", [object, 1]) + [1] + field("a", [object, 0])
    #expect(isRefused(payload([object, 0], shapes: later)))
    let forward = [2, 1] + field("a", [object, 1]) + [1] + field("b", [WireKind.bool.rawValue])
    #expect(isRefused(payload([object, 0, 1], shapes: forward)), "a later shape")
    let backward = [2, 1] + field("b", [WireKind.bool.rawValue]) + [1] + field("a", [object, 0])
    #expect(Binary.read(payload([object, 1, 1], shapes: backward).span.bytes) != nil)
    #expect(isRefused(payload([object, 0], shapes: [1, 0])), "a shape without fields")
    #expect(
      isRefused(payload([object, 0], shapes: [1, 1] + field("a", [0]))), "a field of type null")
    // A recursion through an optional can end.
    let optional = payload([object, 0, 1, 1, 0], shapes: [1, 1] + field("a", [0x80 | object, 0]))
    #expect(Binary.read(optional.span.bytes) != nil)
    let endless = [object, 0] + Array(repeating: 1, count: 200) + [0]
    #expect(isRefused(payload(endless, shapes: [1, 1] + field("a", [0x80 | object, 0]))))
  }

  @Test("The table of shapes has a maximum size.")
  func tableSize() {
    let long = { (count: Int) in
      self.payload(
        [self.object, 0, 1],
        shapes: [1, 1, WireKind.bool.rawValue, UInt8(count & 0x7F | 0x80), UInt8(count >> 7)]
          + Array(repeating: 0x61, count: count))
    }
    #expect(Binary.read(long(4091).span.bytes) != nil)
    #expect(isRefused(long(4092)))
  }

  // MARK: - Changed payloads

  @Test("Every proper prefix of a payload is refused.")
  func prefixes() throws {
    for bytes in try Targets.payloads() {
      for count in bytes.indices { #expect(isRefused(Array(bytes[..<count])), "\(count) bytes") }
      #expect(Targets.tryAll(bytes) > 0)
    }
  }

  @Test("A payload with any one bit flipped is decoded or refused.")
  func flippedBits() throws {
    for bytes in try Targets.payloads() {
      for bit in 0..<(bytes.count * 8) {
        var changed = bytes
        changed[bit / 8] ^= 1 << (bit % 8)
        _ = Targets.tryAll(changed)
        _ = Binary.read(changed.span.bytes)
      }
    }
  }

  /// `make proof` runs it with ten million payloads and the address sanitizer.
  @Test("Payloads with random changes are decoded or refused.", arguments: [testSeed(), 1])
  func randomChanges(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let payloads = try Targets.payloads()
    let goal = isProof ? 5_000_000 : 20_000
    var decoded = 0
    var read = 0
    for step in 0..<goal {
      var bytes = payloads[step % payloads.count]
      for _ in 0...Int.random(in: 0...3, using: &random) { mutate(&bytes, using: &random) }
      if Targets.tryOne(step, bytes) > 0 { decoded += 1 }
      // A payload that can be read without its type has a size in proportion to its bytes.
      if let value = Binary.read(bytes.span.bytes) {
        read += 1
        #expect(Targets.size(of: value) <= 64 * bytes.count, "seed \(seed), step \(step)")
      }
    }
    #expect(decoded > goal / 100 && read > goal / 100, "too few payloads are valid")
    print("changed payloads: \(goal), \(decoded) decoded, \(read) read, seed \(seed)")
  }

  @Test("Random bytes are decoded or refused.")
  func randomBytes() {
    var random = SplitMix64(seed: 1)
    for step in 0..<(20_000 * proofFactor) {
      var bytes = payload(random.bytes(step % 100))
      if step.isMultiple(of: 2) { bytes += random.bytes(step % 7) }
      _ = Targets.tryOne(step, bytes)
      _ = Binary.read(bytes.span.bytes)
    }
  }

  private func mutate(_ bytes: inout [UInt8], using random: inout SplitMix64) {
    guard !bytes.isEmpty else { return }
    let place = Int.random(in: 0..<bytes.count, using: &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
    case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 2:
      bytes[place] = [0, 1, 0x7F, 0x80, 0xFF, 19, 20, 21, 22].randomElement(using: &random) ?? 0
    case 3: bytes.remove(at: place)
    case 4: bytes.insert(UInt8.random(in: 0...30, using: &random), at: place)
    default:
      let other = Int.random(in: 0..<bytes.count, using: &random)
      bytes.swapAt(place, other)
    }
  }
}

/// The types to which changed payloads are decoded.
private enum Targets {
  private static let decoders: [@Sendable ([UInt8]) throws -> Void] = [
    { _ = try decoded([Item].self, from: $0) },
    { _ = try decoded(Optionals.self, from: $0) },
    { _ = try decoded([Widths].self, from: $0) },
    { _ = try decoded([String: [Int]].self, from: $0) },
    { _ = try decoded(Node.self, from: $0) },
    { _ = try decoded([Expression].self, from: $0) },
    { _ = try decoded(Interleaved.self, from: $0) },
    { _ = try decoded(Anything.self, from: $0) },
    { _ = try decoded(Backwards.self, from: $0) },
    { _ = try decoded([Double].self, from: $0) },
    { _ = try decoded(Dog.self, from: $0) },
    { _ = try decoded([Data].self, from: $0) },
    { _ = try decoded(Bool.self, from: $0) },
    { _ = try decoded(String.self, from: $0) },
    { _ = try decoded(Data.self, from: $0) },
    { _ = try decoded(URL.self, from: $0) },
    { _ = try decoded(Int.self, from: $0) },
  ]

  static func payloads() throws -> [[UInt8]] {
    let item = RoundTripTests.item
    let values: [any Encodable] = [
      [item, item],
      Optionals(a: 1, b: "b", c: [1, nil], d: item, g: 2, h: ["a": nil], j: Data([1, 2])),
      [Widths()],
      ["a": [1, 2], "b": []],
      Node(value: 1, children: [Node(value: 2), Node(value: 3)]),
      [Expression.sum(.number(1), .named(name: "n", value: nil))],
      Interleaved(Array(1...9)),
      Anything.list([.null, .object(["a": .text("b")]), .truth(true)]),
      Backwards(a: [1], b: item, c: "c", d: ["x": "y"]),
      [1.5, -2.5],
      Dog(name: "Rex", age: 3),
      [Data([1, 2, 3]), Data()],
    ]
    return try values.map { try encoded($0) }
  }

  /// The number of types to which the bytes decode.
  static func tryAll(_ bytes: [UInt8]) -> Int {
    decoders.count { decoder in tried { try decoder(bytes) } != nil }
  }

  /// The number of types, of the original one and another, to which the bytes decode.
  static func tryOne(_ step: Int, _ bytes: [UInt8]) -> Int {
    [decoders[step % 12], decoders[step / 12 % decoders.count]]
      .count { decoder in tried { try decoder(bytes) } != nil }
  }

  /// The number of values and bytes in a value.
  static func size(of value: BinaryValue) -> Int {
    switch value {
    case .list(let elements): elements.reduce(1) { $0 + size(of: $1) }
    case .fields(let fields): fields.reduce(1) { $0 + size(of: $1.value) }
    case .string(let text), .url(let text): 1 + text.utf8.count
    case .data(let data): 1 + data.count
    default: 1
    }
  }
}
